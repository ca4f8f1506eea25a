"""torch.utils._python_dispatch: there is no level below the ops at which Python could be called."""

from . import absent

_WHY = "write a mode of functions: torch.overrides.TorchFunctionMode"
globals().update(absent.types("utils._python_dispatch", "TorchDispatchMode", _WHY))


def is_traceable_wrapper_subclass(t):
    """False: a tensor that wraps others is an object of its own here."""
    return False


def _get_current_dispatch_mode():
    """None."""
    return None
