"""Engines of quantized products: there is none, and none can be set."""

import pytest

from tinygrad_ext.backends import quantized


def test_there_is_no_engine():
    assert quantized.supported_engines == ["none"] and quantized.engine == "none"
    quantized.engine = "none"
    for value, words in (("fbgemm", "FBGEMM is not supported"), ("other", "not a valid value")):
        with pytest.raises(RuntimeError, match=words):
            quantized.engine = value
    with pytest.raises(AttributeError):
        quantized.supported_engines = []
