"""What stands for a name that cannot be had: importing it works, using it says so."""


def function(name, why):
    """A function that raises NotImplementedError."""

    def absent(*args, **kwargs):
        raise NotImplementedError(f"torch.{name}: {why}")

    absent.__name__ = absent.__qualname__ = name.rpartition(".")[2]
    absent.__doc__ = f"Refused with NotImplementedError: {why}."
    return absent


def functions(module, names, why):
    """Several of one module, by name."""
    return {name: function(f"{module}.{name}", why) for name in names.split()}


class _Absent(type):
    """The type of a type that has no instances."""

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(cls._absent)


def types(module, names, why):
    """Types that can be named, asked about and inherited from, and of which nothing can be made."""
    return {
        name: _Absent(name, (), {"__doc__": f"There is none: {why}.", "_absent": f"torch.{module}.{name}: {why}"})
        for name in names.split()
    }
