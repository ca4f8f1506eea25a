"""Gradients of tables of which few rows or elements were read: those alone and their places, in the layout sparse_coo.

They are written in ops on what arrives, so they have derivatives of their own. Graphs and transforms know plain tensors
only, and get the gradient with its zeros.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.call.levels import active_levels, levels_on


def wanted():
    """Whether a gradient may be sparse here: no level stands by that would have to carry it, as autocast has not."""
    if not levels_on():
        return True
    casting = tuple(later("autocast state").level_class)
    return all(isinstance(level, casting) for level in active_levels())


def rows(grad, size, indices, padding_idx, scale_grad_by_freq):
    """Of a table of this size: a row for each index, those of padding_idx left out."""
    if scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients; leave one of the two out"
        )
    at = indices.reshape(-1).to(tg.int64, copy=True)  # the caller's may be written to
    values = grad.reshape(indices.numel(), *size[1:])
    if padding_idx >= 0:
        kept = at != padding_idx
        at, values = at[kept], values[kept]
    return later("sparse").SparseTensor(at.unsqueeze(0), values, size, values.shape[0] < 2)


def of_gather(grad, self_shape, dim, index, sparse_grad):
    """Of a tensor of which gather read elements: one for each number in the index, or all."""
    size = self_shape
    if not (sparse_grad and size and wanted()):
        return grad._gather_backward(size, dim, index)
    dim %= len(size)
    index = index.reshape(index.shape or 1)  # a number is one element of a vector
    places = [
        index
        if d == dim
        else tg.arange(n, device=index.device).reshape([-1 if k == d else 1 for k in range(len(size))])
        for d, n in enumerate(index.shape)
    ]
    at = tg.stack([place.to(tg.int64).expand(index.shape).reshape(-1) for place in places])
    return later("sparse").SparseTensor(at, grad.reshape(-1), size, at.shape[1] < 2)
