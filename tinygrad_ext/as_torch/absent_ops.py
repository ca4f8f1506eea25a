"""Ops of PyTorch that are not here, under the alias: `torch.ops.aten.lift_fresh.default` is named, fails when called.

Libraries register functions of their own for ops by such names, at import.
"""

import functools

import tinygrad_ext
from tinygrad_ext.as_torch import absent_names

PLACE = "ops:aten"


class Overload:
    """What stands for an overload, or for all of an op."""

    def __init__(self, name):
        self._name = self.__qualname__ = name
        self.__name__ = name.partition(".")[0]

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"torch.ops.aten.{self._name}: {absent_names.WHY}")

    def __repr__(self):
        return f"<absent op 'aten::{self._name}'>"

    def name(self):
        """The op's identity."""
        return f"aten::{self._name}"


class Packet(Overload):
    """What stands for an op; its overloads are attributes."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = vars(self)[name] = Overload(f"{self._name}.{name}")
        return found


@functools.cache
def _packet(name):
    return Packet(name)


def install():
    """Let the namespace answer for the ops it lacks; returns what undoes it."""
    namespace = tinygrad_ext.ops.aten
    former = namespace._tgx_find

    def find(place, name):
        try:
            return former(place, name)
        except AttributeError:
            if not absent_names.lists(PLACE, name):
                raise
        return _packet(name)

    object.__setattr__(namespace, "_tgx_find", find)
    return functools.partial(object.__setattr__, namespace, "_tgx_find", former)
