"""Rules for meta tensors: shape and dtype of a result from the arguments of the call, without data.

A record's `shape=` is one of these, or a function with the op's own arguments that ends in `meta(...)`.
"""

import tinygrad_ext as tg


def meta(shape, dtype):
    """A tensor of this shape and dtype that has no memory."""
    return tg.empty(tuple(shape), dtype=dtype, device="meta")


def same(self, *_):
    """Shape and dtype of the first argument."""
    return meta(self.shape, self.dtype)


def broadcast(*args):
    """Tensors (and numbers) broadcast against each other, in their promoted dtype."""
    operands = [a for a in args if hasattr(a, "shape")]
    dtype = operands[0].dtype
    for other in operands[1:]:
        dtype = tg.result_type(meta((1,), dtype), other) if other.dim() else tg.result_type(operands[0], other)
    return meta(broadcast_sizes(*[t.shape for t in operands]), dtype)


def broadcast_sizes(*shapes):
    """The shape that all shapes repeat to; RuntimeError when there is none."""
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            if hasattr(size, "computed") or hasattr(out[i], "computed"):  # a number of a program that is captured
                out[i] = (size if hasattr(size, "computed") else out[i]).computed("broadcast", out[i], size)
                continue
            if size == 1 or size == out[i]:
                continue
            if out[i] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({out[i]}) must match the size of tensor b ({size}) at "
                    f"non-singleton dimension {i}: shapes {', '.join(str(list(s)) for s in shapes)} do "
                    "not broadcast"
                )
            out[i] = size
    return tuple(out)


def wrapped(dim, rank):
    """Dimension number from 0 on; IndexError outside [-rank, rank-1]."""
    n = max(rank, 1)
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def reduced(self, dim=None, keepdim=False, *_, dtype=None):
    """Dimensions `dim` (all for None or an empty list) gone, or of size one with keepdim."""
    rank = self.dim()
    dims = () if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    gone = {wrapped(d, rank) for d in dims} or set(range(rank))
    shape = [1 if i in gone else s for i, s in enumerate(self.shape) if keepdim or i not in gone]
    return meta(shape, dtype or self.dtype)
