"""torch.testing._comparison: what tests read of it beside `assert_close`."""

from tinygrad_ext.testing.close import assert_allclose, assert_close, default_tolerances, get_tolerances

__all__ = ["assert_allclose", "assert_close", "default_tolerances", "get_tolerances"]
