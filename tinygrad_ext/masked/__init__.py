"""Reductions and normalizations that leave out the elements where a mask is False.

    masked.mean(x, 1, mask=lengths > 2)

mask: of any dtype, broadcast to the input; where it is False an element counts as if it were not there. Without one
the whole input counts. A reduction in which nothing takes part gives the neutral element: 0, 1, infinities, NaN for a
mean. dim may be a tuple; None and () stand for all dimensions. The functions are made of ops, so that derivatives,
transforms and graphs follow from those; there is no tensor type that carries its mask.
"""

import tinygrad_ext as _tg
from tinygrad_ext.core.call.boundary import boundary as _boundary

_WIDENED = ("uint8", "bool", "int8", "int16", "int32")


def _dims(dim, ndim):
    """The dimensions in rising order, counted from the front, each named once."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(ndim))
    ndim, found = max(ndim, 1), []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        if d % ndim in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % ndim)
    return tuple(sorted(found))


def _taken(input, mask):
    """The mask as bools in the input's shape."""
    if mask.dim() > input.dim():
        raise IndexError(
            f"expected a mask that broadcasts to the input, got {mask.dim()} dimensions (mask dimensionality higher "
            f"than of the input, {input.dim()})"
        )
    return mask.to(_tg.bool).expand(input.shape)


def _filled(input, mask, neutral):
    """The input with a neutral element where the mask is False."""
    if mask is None:
        return input
    taken = _taken(input, mask)
    return _tg.where(taken, input, _tg.scalar_tensor(neutral, dtype=input.dtype, device=input.device))


def _least(input, title):
    """The smallest number of a dtype."""
    if input.is_floating_point() or (title == "logsumexp" and input.is_complex()):
        return float("-inf")
    _ordered(input, title)
    return _tg.iinfo(input.dtype).min


def _most(input, title):
    """The greatest number of a dtype."""
    if input.is_floating_point():
        return float("inf")
    _ordered(input, title)
    return _tg.iinfo(input.dtype).max


def _ordered(input, title):
    if input.is_complex() or input.dtype is _tg.bool:
        raise NotImplementedError(f"masked.{title} of a mask is not implemented for {input.dtype}: convert the input")


def _sum_dtype(input, dtype):
    if dtype is not None:
        return dtype
    return _tg.int64 if str(input.dtype).rpartition(".")[2] in _WIDENED else input.dtype


@_boundary
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum of the elements that take part; of integers in int64."""
    dims = _dims(dim, input.dim())
    return _tg.sum(_filled(input, mask, 0), dims, bool(keepdim), dtype=_sum_dtype(input, dtype))


@_boundary
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of the elements that take part; of integers in int64."""
    result = _filled(input, mask, 1).to(_sum_dtype(input, dtype))
    nothing = isinstance(dim, list) and not dim  # PyTorch's product alone leaves all as it is, and takes () for all
    for d in reversed(() if nothing else _dims(dim, input.dim())):
        result = result.prod(d, bool(keepdim))
    return result


@_boundary
def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums along one dimension, to which masked elements add nothing."""
    dtype = input.dtype if dtype is None else dtype
    return _tg.cumsum(_filled(input, mask, 0), _dims(dim, input.dim())[0], dtype=dtype)


@_boundary
def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products along one dimension, which masked elements do not change."""
    dtype = input.dtype if dtype is None else dtype
    return _tg.cumprod(_filled(input, mask, 1), _dims(dim, input.dim())[0], dtype=dtype)


def _cast(result, input, dtype):
    return result.to(input.dtype if dtype is None else dtype)


@_boundary
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Greatest element that takes part; the dtype's least one where none does."""
    filled = input if mask is None else _filled(input, mask, _least(input, "amax"))
    return _cast(_tg.amax(filled, _dims(dim, input.dim()), bool(keepdim)), input, dtype)


@_boundary
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Least element that takes part; the dtype's greatest one where none does."""
    filled = input if mask is None else _filled(input, mask, _most(input, "amin"))
    return _cast(_tg.amin(filled, _dims(dim, input.dim()), bool(keepdim)), input, dtype)


@_boundary
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the greatest element that takes part, as a number of the input's dtype unless dtype= names another."""
    filled = input if mask is None else _filled(input, mask, _least(input, "argmax"))
    return _cast(_tg.argmax(filled, dim, bool(keepdim)), input, dtype)


@_boundary
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the least element that takes part, as a number of the input's dtype unless dtype= names another."""
    filled = input if mask is None else _filled(input, mask, _most(input, "argmin"))
    return _cast(_tg.argmin(filled, dim, bool(keepdim)), input, dtype)


def _count(input, dim, keepdim, mask):
    """How many elements take part, as int64."""
    taken = _tg.ones(input.shape, dtype=_tg.bool, device=input.device) if mask is None else _taken(input, mask)
    return _tg.sum(taken, _dims(dim, input.dim()), bool(keepdim))


@_boundary
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean of the elements that take part; NaN where none does."""
    if not (kind := input.dtype if dtype is None else dtype).is_floating_point and not kind.is_complex:
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {kind}"
        )
    return sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask) / _count(input, dim, keepdim, mask)


@_boundary
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Median along one dimension, the lower of two; NaN where no element takes part, a ValueError for integers."""
    at, floating = _dims(dim, input.dim())[0], input.is_floating_point()
    values = input if floating else input.to(_tg.float32)
    result = _tg.nanmedian(_filled(values, mask, float("nan")), at, keepdim).values
    if floating:
        return result
    if bool(result.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return _cast(result, input, dtype)


@_boundary
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Logarithm of the sum of exponentials of the elements that take part."""
    filled = input if mask is None else _filled(input, mask, _least(input, "logsumexp"))
    return _cast(_tg.logsumexp(filled, _dims(dim, input.dim()), keepdim=bool(keepdim)), input, dtype)


@_boundary
def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """Logarithm of the sum of two exponentials, each of which has a mask of its own."""
    left = input if input_mask is None else _filled(input, input_mask, _least(input, "logaddexp"))
    right = other if other_mask is None else _filled(other, other_mask, _least(other, "logaddexp"))
    return _cast(_tg.logaddexp(left, right), input, dtype)


@_boundary
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm of the elements that take part."""
    ord = 2.0 if ord is None else ord
    filled = _filled(input, mask, float("inf") if ord == float("-inf") else 0)
    dims = _dims(dim, input.dim())
    return _tg.linalg.vector_norm(filled, ord, dims, bool(keepdim), dtype=input.dtype if dtype is None else dtype)


def _squares(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    if dtype is None:
        dtype = input.dtype if input.is_floating_point() or input.is_complex() else _tg.float32
    wide = dtype if dtype.is_floating_point or dtype.is_complex else _tg.float32
    center = sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / _count(input, dim, True, mask)
    apart = input - center
    total = sum(apart * apart.conj(), dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = _count(input, dim, keepdim, mask).to(total.real.dtype if total.is_complex() else total.dtype)
    return (total / (count - correction).clamp(min=0)).to(dtype)


@_boundary
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance of the elements that take part, divided by their number less the correction, 1 unless unbiased=False."""
    return _squares(input, dim, unbiased, correction, keepdim, dtype, mask)


@_boundary
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation of the elements that take part, the root of var."""
    return _squares(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def _row_wise(function, extreme, title, input, dim, dtype, mask):
    filled = input if mask is None else _filled(input, mask, extreme(input, title))
    return function(filled, _dims(dim, input.dim())[0], dtype=input.dtype if dtype is None else dtype)


@_boundary
def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax over the elements that take part, 0 at the others; NaN where none does."""
    return _row_wise(_tg.nn.functional.softmax, _least, "softmax", input, dim, dtype, mask)


@_boundary
def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of softmax over the elements that take part, minus infinity at the others."""
    return _row_wise(_tg.nn.functional.log_softmax, _least, "log_softmax", input, dim, dtype, mask)


@_boundary
def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of the negative elements that take part, 0 at the others."""
    return _row_wise(_tg.nn.functional.softmin, _most, "softmin", input, dim, dtype, mask)


@_boundary
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The elements that take part over their norm along dim, which eps bounds from below; 0 at the others."""
    if dtype is None and input.dtype in (_tg.float16, _tg.bfloat16):  # rounded once
        return normalize(input.float(), ord, dim, eps=eps, mask=mask).to(input.dtype)
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / _tg.maximum(size, size.new_full((), eps))
