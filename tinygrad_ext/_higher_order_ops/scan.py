"""`scan`: a function of what is carried and of one element after the other. In a graph each step stands for itself."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.utils._pytree import tree_flatten, tree_unflatten


@boundary
def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """(what is carried in the end, the results of all steps, stacked along dim).

    Args:
        combine_fn: (carried, element) -> (carried, result); the first is of the structure of init.
        init: a tensor, or tensors in containers. xs: the same, with one size along dim.
        reverse: from the last element on; its result stays the last.

    Raises RuntimeError for other arguments, and for what is carried of another structure, shape or dtype.

    >>> scan(lambda c, x: (c + x, c * x), tg.tensor(0.0), tg.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    carried, spec = tree_flatten(init)
    leaves, elements = tree_flatten(xs)
    _check(combine_fn, carried, leaves, dim, reverse)
    count = leaves[0].shape[dim] if leaves else 0
    at = dim % leaves[0].dim() if leaves else 0
    results = [None] * count
    for step in reversed(range(count)) if reverse else range(count):
        element = tree_unflatten([leaf.select(dim, step) for leaf in leaves], elements)
        init, results[step] = combine_fn(init, element)
        _check_carried(spec, carried, init)
    if not count:
        return init, None
    made = [tree_flatten(result) for result in results]
    if any(found != made[0][1] for _, found in made):
        raise RuntimeError("scan(): combine_fn must return one structure in each step")
    rows = zip(*(parts for parts, _ in made))
    return init, tree_unflatten([tg.stack(row, at if at <= row[0].dim() else 0) for row in rows], made[0][1])


def _check_carried(spec, before, init):
    after, found = tree_flatten(init)
    if found != spec:
        raise RuntimeError(f"scan(): what combine_fn carries on must be a tree {spec} as init is, not {found}")
    for old, new in zip(before, after):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise RuntimeError(
                f"scan(): what is carried must keep its shape and dtype, {tuple(old.shape)} of {old.dtype}, and "
                f"became {tuple(new.shape)} of {new.dtype}"
            )


def _check(combine_fn, carried, leaves, dim, reverse):
    if not callable(combine_fn):
        raise RuntimeError(f"scan(): Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise RuntimeError(f"scan(): Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"scan(): Reverse must be a bool, but got {type(reverse)}")
    if not carried:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, rows in (("init", carried), ("xs", leaves)):
        for leaf in rows:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"scan(): All {name} leaves must be a Tensor but got {leaf!r}")
    for leaf in leaves:
        if not -leaf.dim() <= dim < leaf.dim() or not leaf.shape[dim]:
            raise RuntimeError(
                "scan(): All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, got the "
                f"shape {tuple(leaf.shape)} and dim {dim}"
            )
    if len({leaf.shape[dim] for leaf in leaves}) > 1:
        raise RuntimeError(f"scan(): xs leaves must have one size along dim {dim}")
