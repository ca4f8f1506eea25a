"""Forward mode by dual tensors: tensors that carry the derivative along one direction.

    with dual_level():
        dual = make_dual(x, direction)
        value, product = unpack_dual(f(dual))

The same as `func.jvp`, for programs that do not take the form of one function.
"""

import threading
from typing import Any, NamedTuple

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.modes import Mode

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_thread = threading.local()


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the value, and its derivative or None."""

    primal: Any
    tangent: Any


def _current():
    return getattr(_thread, "level", None)


@boundary
def enter_dual_level():
    """Begin a level of forward mode in this thread, and return its number, 0.

    Raises RuntimeError inside another: to differentiate twice there is `func.jvp`, which nests.
    """
    if _current() is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: leave the dual level first, or use func.jvp, which "
            "nests"
        )
    _thread.level = later("forward mode").Dual()
    _thread.level.__enter__()
    return 0


@boundary
def exit_dual_level(*, level=None):
    """End the level of this thread, and with it the derivatives of its dual tensors.

    Raises RuntimeError when there is none, or when level is another number than its.
    """
    if _current() is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    found, _thread.level = _thread.level, None
    found.__exit__(None, None, None)


class dual_level(Mode):
    """A `with` (or decorator) in which dual tensors live; those made inside have no derivative after it."""

    __slots__ = ()

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()


@boundary
def make_dual(tensor, tangent, *, level=None):
    """A tensor with the values of `tensor` and the derivative `tangent`, of the same shape.

    Both may be differentiated backward, too. Raises RuntimeError outside a dual level and for another shape, ValueError
    for dtypes that have no derivatives.

    Example::

        with dual_level():
            unpack_dual(make_dual(x, v).exp()).tangent                 # exp(x) * v
    """
    found = _current()
    if found is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if found.owns(tensor) and found.tangent(tensor) is not None:
        raise RuntimeError(
            "make_dual(): the tensor has a forward gradient at this level already; take its value by unpack_dual first"
        )
    return later("forward mode").checked_pair(found, found.primal(tensor), found.primal(tangent))


@boundary
def unpack_dual(tensor, *, level=None):
    """The value of a dual tensor and its derivative, as a named tuple (primal, tangent).

    tangent is None where there is none: of a plain tensor, and of all outside a dual level. It is zeros for what does
    not change with its dual inputs, as a drawn number.
    """
    found = _current()
    if found is None:
        return UnpackedDualTensor(later("forward mode").without_level(tensor), None)
    return UnpackedDualTensor(*later("forward mode").unpacked(found, tensor))
