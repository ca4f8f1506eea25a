"""softmax and log_softmax of what a tensor of the layout sparse_coo stores."""

from tinygrad_ext.core.data.dtype import dtype as kind_of_dtype
from tinygrad_ext.core.data.dtype import sparse_coo
from tinygrad_ext.ops.shapes import wrapped

from .coo import flat
from .handlers import handler


def _groups(indices, sizes, dim):
    """The number of the slice along dim in which each place lies, and how many slices have one."""
    rest = [i for i in range(len(sizes)) if i != dim]
    numbers = flat(indices[rest], [sizes[i] for i in rest])
    found, where = numbers.unique(return_inverse=True)
    return where, found.numel()


def _along(name, input, dim, dtype):
    """input with each place once, dim counted from the front, the places and the values in a floating dtype."""
    if getattr(input, "layout", None) is not sparse_coo:
        raise NotImplementedError(
            f"{name}(): input must be a tensor of the layout {sparse_coo}, got "
            f"{getattr(input, 'layout', type(input).__name__)}; to_sparse() makes one, {name}() of plain tensors is in "
            "nn.functional"
        )
    dim, input = wrapped(dim, input.dim()), input.coalesce()
    indices, values, _ = input._parts
    values = values if dtype is None else values.to(dtype)
    if not values.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{values.dtype}': pass dtype=, a floating one")
    return input, dim, indices, values


def _shared(values, where, count):
    """Values less the largest of their slice, their exponentials, and the sum of those in each slice."""
    each = where.reshape((-1, *(1,) * (values.dim() - 1))).expand(values.shape)
    none = values.detach().new_full((count, *values.shape[1:]), float("-inf"))
    most = none.scatter_reduce(0, each, values.detach(), "amax")
    apart = values - most.index_select(0, where)
    grown = apart.exp()
    return apart, grown, grown.new_zeros(most.shape).index_add(0, where, grown)


def _dtype(rest, dtype):
    """dtype= as functions of plain tensors take it, behind what they ignore."""
    return next((x for x in rest if isinstance(x, kind_of_dtype)), dtype)


@handler("softmax")
def softmax(input, dim, *rest, dtype=None):
    """Over what is stored along dim, as if all else was minus infinity."""
    input, dim, indices, values = _along("softmax", input, dim, _dtype(rest, dtype))
    rank = input.sparse_dim()
    if dim >= rank:
        return input.with_values(values.softmax(dim - rank + 1))
    where, count = _groups(indices, input.shape[:rank], dim)
    _, grown, sums = _shared(values, where, count)
    return input.with_values(grown / sums.index_select(0, where))


@handler("log_softmax")
def log_softmax(input, dim, *rest, dtype=None):
    """The logarithm of softmax, without the loss of precision of the two steps."""
    input, dim, indices, values = _along("log_softmax", input, dim, _dtype(rest, dtype))
    rank = input.sparse_dim()
    if dim >= rank:
        return input.with_values(values.log_softmax(dim - rank + 1))
    where, count = _groups(indices, input.shape[:rank], dim)
    apart, _, sums = _shared(values, where, count)
    return input.with_values(apart - sums.log().index_select(0, where))
