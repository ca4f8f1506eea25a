"""What the modules of switches share."""

import contextlib
import sys

_frozen = []


def flags_frozen():
    """Whether switches are to be set by `flags` alone, since `disable_global_flags` was called."""
    return bool(_frozen)


def disable_global_flags():
    """Say that switches are to be set by `flags` alone. They change no result here, so the others go on to be taken."""
    _frozen[:] = [True]


def flags_of(module, defaults):
    """The `flags` of a module of switches: a context manager that sets some and then sets them back."""

    @contextlib.contextmanager
    def flags(**values):
        """Set switches inside a `with`."""
        own = vars(sys.modules[module])
        unknown = [name for name in values if name not in defaults]
        if unknown:
            raise TypeError(
                f"flags() got an unexpected keyword argument '{unknown[0]}'. Its arguments are {', '.join(defaults)}."
            )
        before = {name: own[name] for name in defaults}
        own.update(defaults | values)
        try:
            yield
        finally:
            own.update(before)

    return flags
