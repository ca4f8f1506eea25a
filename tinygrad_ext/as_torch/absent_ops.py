"""Ops of PyTorch that are not here, under the alias: `torch.ops.aten.lift_fresh.default` is named, fails when called.

Libraries register functions of their own for ops by such names, at import. An overload that an op lacks here, such as
`to.dtype_layout`, is named too: what it takes another overload takes, so that a call of it is one of the op.
"""

import functools
import re

import tinygrad_ext
from tinygrad_ext.as_torch import absent_names
from tinygrad_ext.registry import op_namespace

PLACE = "ops:aten"
INSIDE = "_c10d_functional _c10d_functional_autograd _dtensor _native _quantized c10d c10d_functional inductor mkldnn "
INSIDE = frozenset((INSIDE + "onednn prims quantization quantized symm_mem").split())  # namespaces of PyTorch's parts


class Overload:
    """What stands for an overload, or for all of an op."""

    def __init__(self, name, namespace="aten"):
        self._name = self.__qualname__ = name
        self.__name__ = name.partition(".")[0]
        self.namespace = namespace

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"torch.ops.{self.namespace}.{self._name}: {absent_names.WHY}")

    def __repr__(self):
        return f"<absent op '{self.name()}'>"

    def name(self):
        """The op's identity."""
        return f"{self.namespace}::{self._name}"


class Packet(Overload):
    """What stands for an op; its overloads are attributes."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = vars(self)[name] = Overload(f"{self._name}.{name}", self.namespace)
        return found


class Namespace:
    """What stands for such a namespace: any op of it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _packet(name, self._name)

    def __repr__(self):
        return f"<absent ops of namespace '{self._name}'>"


class Alike(Overload):
    """What stands for an overload of PyTorch's of an op that is here."""

    def __init__(self, packet, name):
        super().__init__(f"{packet.__name__}.{name}")
        self.overloadpacket = packet

    def __call__(self, *args, **kwargs):
        return self.overloadpacket(*args, **kwargs)

    def __repr__(self):
        return f"<overload 'aten::{self._name}' of PyTorch's>"


class AlikeOut(Alike):
    """The same for one that writes its results to `out=`, or to `out0=`, `out1=` and so on, which it returns."""

    def __call__(self, *args, **kwargs):
        targets = [kwargs.pop(name) for name in sorted(kwargs) if re.fullmatch(r"out\d*", name)]
        if not targets:
            raise RuntimeError(f"aten::{self._name}() is missing value for argument 'out', a tensor to write to")
        results = self.overloadpacket(*args, **kwargs)
        several, listed = isinstance(results, (tuple, list)), isinstance(targets[0], (tuple, list))
        targets = list(targets[0]) if listed else targets
        if len(targets) != (len(results) if several else 1):
            raise RuntimeError(f"aten::{self._name}() has {len(results) if several else 1} results, not {len(targets)}")
        for result, target in zip(results if several else [results], targets):
            tinygrad_ext.alias_copy(result, out=target)
        return None if listed else tuple(targets) if several else targets[0]


@functools.cache
def _packet(name, namespace="aten"):
    return Packet(name, namespace)


def _namespace(name):
    # a library may have filled one
    return Namespace(name) if name in INSIDE and name not in tinygrad_ext.ops._names() else None


@functools.cache
def _alike(packet, name):
    aten = packet.candidates[0].schema.namespace == "aten"
    if not aten or not absent_names.lists(PLACE, f"{packet.__name__}.{name}"):
        return None
    return (AlikeOut if name == "out" or name.endswith("_out") else Alike)(packet, name)


def install():
    """Let the namespace answer for the ops it lacks, and ops for overloads; returns what undoes it."""
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
    op_namespace.of_pytorch.append(_alike)
    tinygrad_ext.ops.of_pytorch.append(_namespace)

    def undo():
        op_namespace.of_pytorch.remove(_alike)
        tinygrad_ext.ops.of_pytorch.remove(_namespace)
        object.__setattr__(namespace, "_tgx_find", former)

    return undo
