"""Everything tgx-vision brings passes the checks of `plugins check vision`: one test for each op and check."""

import pytest

from tinygrad_ext.testing import plugin_tests

pytest.importorskip("tgx_vision", reason="tgx-vision is not installed: pip install ./plugins/vision")

test_conformance = plugin_tests("vision")
