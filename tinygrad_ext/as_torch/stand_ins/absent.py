"""What stands for a name that cannot be had: importing it works, using it says so.

A library that is being imported may call it all the same, to decorate a function or for a constant: it gets a `Later`.
"""

import inspect
import sys


class Later:
    """What a call gave while a module was imported: it gives back what it decorates, and fails at any other use."""

    def __init__(self, name, why):
        self._name, self._why = name, why

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        if _importing():
            return self
        raise NotImplementedError(f"torch.{self._name}: {self._why}")

    def __or__(self, other):
        return self

    def __bool__(self):
        return False  # asked while a module is imported: what it told of is not there

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if _importing():
            return Later(f"{self._name}.{name}", self._why)
        raise NotImplementedError(f"torch.{self._name}: {self._why}")


def _importing():
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def _called(name, why, args):
    """A Later while a module is imported; else NotImplementedError."""
    if not _importing():
        raise NotImplementedError(f"torch.{name}: {why}")
    later = Later(name, why)
    return later(*args) if len(args) == 1 and inspect.isroutine(args[0]) else later


def function(name, why):
    """A function that raises NotImplementedError; one that asks, of nothing, whether a part is there says no."""
    short = name.rpartition(".")[2].lstrip("_")
    asks = short.startswith("has_") or f"_{short}".endswith("_available")

    def absent(*args, **kwargs):
        return False if asks and not args and not kwargs else _called(name, why, args)

    absent.__name__ = absent.__qualname__ = name.rpartition(".")[2]
    absent.__doc__ = f"Refused with NotImplementedError: {why}."
    absent.refusal = f"torch.{name}: {why}"
    return absent


def functions(module, names, why):
    """Several of one module, by name."""
    return {name: function(f"{module}.{name}", why) for name in names.split()}


class _Absent(type):
    """The type of a type that has no instances."""

    def __call__(cls, *args, **kwargs):
        return _called(*cls._absent, args)

    def __getattr__(cls, name):
        """What a library takes of a private class while it is imported, to put its own in the place of it."""
        path, why = cls._absent
        if name.startswith("__") or not path.startswith("_") or not _importing():
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return Later(f"{path}.{name}", why)


def types(module, names, why):
    """Types that can be named, asked about and inherited from, and of which nothing can be made."""
    return {
        name: _Absent(name, (), {"__doc__": f"There is none: {why}.", "_absent": (f"{module}.{name}", why)})
        for name in names.split()
    }
