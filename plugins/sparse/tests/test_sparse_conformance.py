"""Both ops of tgx-sparse pass the checks of `plugins check sparse`: one test for each op and check."""

import pytest

from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_sparse", reason="tgx-sparse is not installed: pip install ./plugins/sparse")

test_conformance = plugin_tests("sparse")
