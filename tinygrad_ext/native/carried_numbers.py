"""Numbers in an index that a level carries, so that there is no one number to select at: vmap has one for each sample.

They stay index tensors. A number takes its dimension away and has no say in where the common shape of index tensors
stands, which an index tensor has where it is apart from the others.
"""

from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.core.data.tensor import Carried, Tensor


def beside(window, tensors):
    """The window with the dimensions of carried numbers in front of those of the other index tensors.

    tensors: of each dimension the index tensor or None, a mask standing for as many as it has; put in order too.
    """
    if not any(map(_is_number, tensors)):
        return window
    at, rank = {}, 0
    for t in tensors:
        at[rank] = t
        rank += t.dim() if t is not None and t.dtype in (by_name["bool"], by_name["uint8"]) else 1
    numbers = [d for d, t in at.items() if _is_number(t)]
    others = [d for d, t in at.items() if t is not None and d not in numbers]
    if not others:
        return window
    order = [d for d in range(window.dim()) if d not in numbers]
    first = order.index(others[0])
    order[first:first] = numbers
    tensors[:] = [at[d] for d in order if d in at]
    return window.permute(order)


def as_copied(window, tensors, value):
    """A value to be assigned where only numbers stand, in the window's dtype: what a plain one selects is copied to."""
    if isinstance(value, Tensor) and all(t is None or _is_number(t) for t in tensors):
        return value.to(window.dtype)
    return value


def _is_number(index):
    return type(index) is Carried and index.dim() == 0
