"""Exchanging what two tensors are, while everybody who holds them holds the same objects."""

import copyreg
import weakref

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.core.grad.cuts import forget_cuts_of
from tinygrad_ext.core.grad.methods import swap_contents

__all__ = ["swap_tensors"]


def _poisoned(grads):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: the tensor that this graph leads to "
        "was swapped after the forward pass, as by a conversion of a module under "
        "set_swap_module_params_on_conversion(True). Convert before the forward pass, or after the backward one"
    )


@_boundary
def swap_tensors(t1, t2):
    """Let each of two tensors be what the other one was: class, attributes, memory, history and gradient.

    A backward pass through a graph that leads to one of them, or that has saved one, raises RuntimeError.

    Raises RuntimeError where something refers weakly to one of them, where one is a view of the other, and for classes
    with other slots.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor) or type(t) is Carried:
            raise TypeError(
                f"swap_tensors(): argument '{name}' must be a tensor outside of traces, not {type(t).__name__}"
            )
        forget_cuts_of(t)
        if weakref.getweakrefs(t):
            raise RuntimeError(
                f"swap_tensors(): Cannot swap {name} because it has weakref associated with it; drop those"
            )
    if t1._base is t2 or t2._base is t1:
        raise RuntimeError("swap_tensors(): Cannot swap a tensor and a view of it, which would be a view of itself")
    slots = set(copyreg._slotnames(type(t1)))
    if slots != set(copyreg._slotnames(type(t2))):
        raise RuntimeError(
            f"swap_tensors(): Cannot swap t1 and t2 if they have different slots: {type(t1).__name__} and "
            f"{type(t2).__name__} do"
        )
    first, second = type(t1), type(t2)
    if first is not second:
        t1.__class__, t2.__class__ = second, first
    mine, others = dict(vars(t1)), dict(vars(t2))
    for t, attributes in ((t1, others), (t2, mine)):
        vars(t).clear()
        vars(t).update(attributes)
    for slot in slots:
        mine, others = getattr(t1, slot, slots), getattr(t2, slot, slots)
        for t, value in ((t1, others), (t2, mine)):
            if value is not slots:
                setattr(t, slot, value)
            elif hasattr(t, slot):
                delattr(t, slot)
    exchange(t1, t2)


def exchange(t1, t2):
    """Swap memory, history and gradient of two tensors, but not classes and attributes."""
    forget_cuts_of(t1)
    forget_cuts_of(t2)
    swap_contents(t1, t2, _poisoned)
