"""What transforms leave as it is: programs without mutation, and the tensors behind carried values."""

import functools

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Carried, Tensor


@boundary
def functionalize(func, *, remove="mutations"):
    """A function that computes the same as `func`; a graph that is captured of it has no op that writes in place.

    Every capture is free of mutation here (docs/trace.md), so this checks its argument and passes the call on.

    Arguments:
        remove: "mutations" or "mutations_and_views". Raises RuntimeError for anything else.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove!r}. Valid options "
            "are: remove='mutations' and remove='mutations_and_views'"
        )

    @boundary
    def wrapped(*args, **kwargs):
        return func(*args, **kwargs)

    return functools.update_wrapper(wrapped, func, updated=())


@boundary
def debug_unwrap(tensor, *, recurse=True):
    """The tensor behind one that a transform carries, to look at it: with its batch, or without its tangent.

    Arguments:
        recurse: through all levels; else through the highest only.

    Raises ValueError for what is no tensor. Nothing computed from the answer is known to the transform.
    """
    if not isinstance(tensor, Tensor):
        raise ValueError(f"debug_unwrap: expected a tensor, got {type(tensor).__name__}")
    while type(tensor) is Carried and hasattr(tensor.level, "parts"):
        tensor = tensor.level.parts(tensor)[0]
        if not recurse:
            break
    return tensor
