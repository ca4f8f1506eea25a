"""`associative_scan`: everything that lies before, combined, in as many steps as the logarithm of the length.

Neighbours are combined in one call for all of them, half as many are scanned, and the others follow from those (Ladner
and Fischer, 1980). In a graph the steps stand one after the other.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.func import vmap
from tinygrad_ext.utils._pytree import tree_flatten, tree_unflatten


@boundary
def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """What combine_fn makes of the first elements along dim, of the first two, and so on to all of them.

    Args:
        combine_fn: an associative function of two trees like an element of xs; gives another.
        xs: a tensor, or tensors in containers, of one size along dim.
        dim: the dimension; combine_fn sees its elements without it.
        reverse: from the last element on.
        combine_mode: "generic". "pointwise" is for devices that are not here.

    Raises ValueError for other arguments, RuntimeError for a result of another structure.

    >>> associative_scan(lambda a, b: a * b, tg.tensor([1.0, 2.0, 3.0, 4.0]), 0, combine_mode="generic")
    tensor([ 1.,  2.,  6., 24.])
    """
    leaves, spec = tree_flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)

    def of_rows(left, right):
        made, found = tree_flatten(combine_fn(tree_unflatten(list(left), spec), tree_unflatten(list(right), spec)))
        if found != spec:
            raise RuntimeError(
                f"associative_scan(): combine_fn must return what it is given, a tree {spec}, and returned {found}"
            )
        return tuple(made)

    combine = vmap(of_rows)
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    made = _scanned(combine, tuple([leaf.flip(0) for leaf in leaves] if reverse else leaves))
    return tree_unflatten([(leaf.flip(0) if reverse else leaf).movedim(0, dim) for leaf in made], spec)


def _scanned(combine, leaves):
    count = leaves[0].shape[0]
    if count < 2:
        return leaves
    odd = _scanned(combine, combine(_each(leaves, slice(0, count - 1, 2)), _each(leaves, slice(1, None, 2))))
    even = [leaf[:1] for leaf in leaves]
    if count > 2:
        before = _each(odd, slice(0, (count - 1) // 2))
        rest = combine(before, _each(leaves, slice(2, None, 2)))
        even = [tg.cat([first, others]) for first, others in zip(even, rest)]
    return tuple(map(_in_turn, even, odd))


def _each(leaves, part):
    return tuple(leaf[part] for leaf in leaves)


def _in_turn(even, odd):
    count = odd.shape[0]
    pairs = tg.stack([even[:count], odd], 1).flatten(0, 1)
    return tg.cat([pairs, even[count:]]) if even.shape[0] > count else pairs


def _check(combine_fn, leaves, dim, reverse, combine_mode):
    if not callable(combine_fn):
        raise ValueError(f"associative_scan(): Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise ValueError(f"associative_scan(): Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"associative_scan(): Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"associative_scan(): Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    if combine_mode == "pointwise":
        raise ValueError(
            "associative_scan(): For combine_mode='pointwise', all input tensors need to be on CUDA or XPU: pass "
            "combine_mode='generic'"
        )
    if not leaves:
        raise ValueError("associative_scan(): Expected at least 1 xs leaf")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"associative_scan(): xs leaves must be a Tensor, not {type(leaf).__name__}")
        if not -leaf.dim() <= dim < leaf.dim() or not leaf.shape[dim]:
            raise ValueError(
                "associative_scan(): All xs leaves must at least have 'dim' number of dimensions and scan dimension "
                f"> 0, got the shape {tuple(leaf.shape)} and dim {dim}"
            )
    if len({leaf.shape[dim] for leaf in leaves}) > 1:
        raise ValueError(f"associative_scan(): xs leaves must have one size along dim {dim}")
