"""Generators of random numbers: made in a script, or given to it; ops leave them where their draws end."""

from tinygrad_ext.core.data.random import Generator
from tinygrad_ext.graph.types import GENERATOR, INT, TENSOR

from .builtins import builtin
from .compiler import hook
from .values import Method

# name -> (types of arguments, type of the result; None for the generator itself)
_METHODS = {
    "manual_seed": ((INT,), None),
    "seed": ((), INT),
    "initial_seed": ((), INT),
    "get_state": ((), TENSOR),
    "set_state": ((TENSOR,), None),
    "clone_state": ((), GENERATOR),
}


@builtin(Generator)
def _made(c, args, kwargs):
    """Generator(), of the cpu, as all are."""
    if len(args) + len(kwargs) > 1 or not kwargs.keys() <= {"device"}:
        c.fault("Generator() takes a device alone")
    (device,) = (*args, *kwargs.values()) or ("cpu",)
    return c.emit("prim::generator.made", (c.value(device),), GENERATOR)


@hook
def generator_attribute(c, value, name):
    """A method of a generator."""
    if name not in _METHODS:
        c.fault(f"'Generator' object has no attribute or method '{name}' in script; it has {', '.join(_METHODS)}")
    return Method(name, lambda c, args, kwargs: _call(c, value, name, args, kwargs))


def _call(c, value, name, args, kwargs):
    wanted, result = _METHODS[name]
    if kwargs or len(args) != len(wanted):
        c.fault(f"Generator.{name}() takes {len(wanted)} arguments, by position, got {len(args) + len(kwargs)}")
    given = [c.value(a, type, f"an argument of {name}()") for a, type in zip(args, wanted)]
    if result is None:
        c.effect(f"prim::generator.{name}", value, *given)
        return value
    return c.emit(f"prim::generator.{name}", (value, *given), result)
