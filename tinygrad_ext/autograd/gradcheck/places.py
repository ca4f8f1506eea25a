"""Sparse arguments of a function under test: its derivatives are those by the elements that they hold."""

import functools

from tinygrad_ext.core.data.dtype import sparse_coo, strided
from tinygrad_ext.core.data.tensor import Tensor


def _holds_all(t):
    """A sparse tensor with every element, zeros too, in the layout of t."""
    dense, numbers = t.detach().to_dense(), t.detach().to_dense().new_ones(t.shape)
    if t.layout is sparse_coo:
        rank = t.sparse_dim()
        return numbers.to_sparse(rank).with_values(dense.reshape(-1, *dense.shape[rank:]))
    order = numbers.reshape(-1).cumsum(0).reshape(t.shape).to_sparse(layout=t.layout)  # counted from 1, row by row
    return order.with_values(dense.reshape(-1)[order.values().long() - 1])


def by_values(func, args, masked):
    """(a function of the elements that sparse arguments hold, the arguments with these in their place).

    Where not masked every element of them is one, also where there is none: a derivative by a zero is checked too.
    """
    held = {}
    for i, t in enumerate(args):
        if isinstance(t, Tensor) and t.layout is not strided and t.requires_grad:
            t = t.detach().coalesce() if t.layout is sparse_coo else t.detach()
            held[i] = t if masked else _holds_all(t)
    if not held:
        return func, args

    @functools.wraps(func)
    def of_values(*args, **kwargs):
        return func(*[held[i].with_values(a) if i in held else a for i, a in enumerate(args)], **kwargs)

    values = {i: t.values().detach().clone().requires_grad_() for i, t in held.items()}
    return of_values, tuple(values.get(i, a) for i, a in enumerate(args))
