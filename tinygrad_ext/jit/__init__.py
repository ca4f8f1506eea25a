"""Programs as graphs: `trace` writes a program down while it runs. The names are PyTorch's.

Nothing is loaded before it is used.
"""

import importlib

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.errors import no_attribute

# name -> the module of this package that has it
_PLACES = {
    **dict.fromkeys(["TracingCheckError", "is_tracing", "trace", "trace_module"], "tracing"),
}
__all__ = sorted(_PLACES)


@boundary
def __getattr__(name):
    if name not in _PLACES:
        raise no_attribute(__name__, name, __all__)
    found = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *_PLACES})
