"""Checks of ops against references, for the package's own tests and for plugin authors.

For authors: `check_plugin`, `check_op` and `check_module` run the conformance battery and give a report, `plugin_tests`
makes pytest tests of it, and `library.opcheck` is PyTorch's spelling of it for one call. See docs/check_plugins.md.

`assert_close` compares tensors, numbers and containers of them, `make_tensor` draws one, as PyTorch's do.
`FileCheck` asks what a text holds, and in which order.

layouts.py makes the same values in other memory layouts, compare.py compares results, sweep.py runs one op's
samples through one check. tests/test_every_op.py multiplies them out, and battery/ stands on the same functions.
"""

import importlib

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.errors import refuse_unknown

_LAZY = {
    **dict.fromkeys(("check_module", "check_op", "check_plugin"), "battery"),
    "plugin_tests": "conformance",
    "FileCheck": "file_check",
    "assert_allclose": "close",
    "assert_close": "close",
    "make_tensor": "make",
}
__all__ = list(_LAZY)
_refuse = refuse_unknown(__name__)


@_boundary
def __getattr__(name):
    if name not in _LAZY:
        return _refuse(name)
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__():
    return sorted({*globals(), *__all__})
