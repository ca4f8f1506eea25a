"""What the modules of switches share."""

import contextlib
import sys


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
