"""Everything tgx-special brings passes the checks of `plugins check special`: one test for each op and check."""

import pytest

from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_special", reason="tgx-special is not installed: pip install ./plugins/special")

test_conformance = plugin_tests("special")
