"""gather and the scatter family: an index as large as the result, along one dimension."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_index, forward, sparse_gradients
from tinygrad_ext.ops.fused import conj, fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.ops.shapes import broadcast_sizes, wrapped


def _indices(make):
    """self, dim, index of a read."""
    yield make(3, 4), 0, make.ints(0, 3, (2, 4))
    yield make(3, 4), -1, make.ints(0, 4, (3, 6))
    yield make(3, 4), 1, make.ints(0, 4, (2, 2))
    yield make(2, 3, 4), 1, make.ints(0, 3, (2, 5, 4))
    yield make(5), 0, make.ints(0, 5, (0,))
    yield make(), 0, make.of(0)


def _places(dim, index):
    """NumPy index of the places that `index` names along `dim`."""
    import numpy

    at = list(numpy.indices(index.shape, sparse=True))
    at[dim] = index
    return tuple(at)


def _reference_gather(self, dim, index):
    return self[_places(dim, index)] if self.ndim else self


def _reduced(self, dim, index, src, ufunc):
    import numpy

    out, index = self.copy(), numpy.asarray(index)
    src = (
        numpy.broadcast_to(numpy.asarray(src, dtype=self.dtype), index.shape)
        if numpy.ndim(src) == 0
        else src[tuple(slice(s) for s in index.shape)]
    )
    if not self.ndim:
        out, index, src = out.reshape(1), index.reshape(1), src.reshape(1)
    if ufunc is None:
        out[_places(dim, index)] = src
    else:
        ufunc.at(out, _places(dim, index), src)
    return out.reshape(self.shape)


def _reference_scatter(self, dim, index, src, *, reduce=None):
    import numpy

    return _reduced(self, dim, index, src, {None: None, "add": numpy.add, "multiply": numpy.multiply}[reduce])


def _reference_add(self, dim, index, src):
    import numpy

    return _reduced(self, dim, index, src, numpy.add)


def _bad(name, *args):
    """A call on a 2 x 3 tensor with index 5."""

    def call():
        return getattr(tg.zeros(2, 3), name)(0, tg.tensor([[5]]), *[tg.ones(1, 1) if a == "src" else a for a in args])

    return call


_OUTSIDE = "index 5 is out of bounds for dimension 0 with size 2"

op(
    "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    batch=batching_index.along("gather"),
    kernel="gather",
    types="bool int float half complex",
    variants="function method out",
    grad={"self": sparse_gradients.of_gather},
    jvp="linear",
    samples=lambda make: [Sample(*a) for a in _indices(make)],
    reference=_reference_gather,
    errors=[(_bad("gather"), RuntimeError, _OUTSIDE)],
    tags="moves apart itself:index",
    doc="out[i, j] = self[index[i, j], j] for dim=0, and so on. The index (int32 or int64) has self's rank and is no "
    "larger than self apart from `dim`; RuntimeError outside the bounds. With sparse_grad the gradient is sparse_coo, "
    "but in graphs and transforms.",
)

op(
    "aten::_gather_backward(Tensor grad, int[] size, int dim, Tensor index) -> Tensor",
    batch=batching_index.gather_backward,
    kernel="gather_backward",
    types="bool int float half complex",
    variants="method",
    grad={"grad": lambda grad, dim, index: grad.gather(dim, index)},
    jvp="linear",
    samples=lambda make: [Sample(make(2, 4), (3, 4), 0, make.ints(0, 3, (2, 4)))],
    doc="Zeros of a size with grad added where gather read it.",
)


# ---- scatter -------------------------------------------------------------------------------------------------------


def _filled(grad, shape):
    """grad, of the index's shape, in zeros of the source's shape."""
    if tuple(grad.shape) == tuple(shape):
        return grad
    if 0 in grad.shape:  # such an index has any rank
        return grad.new_zeros(shape)
    return grad._basic_index_backward(shape, tuple(slice(0, s) for s in grad.shape))


def _distinct(make):
    """self, dim, index without repeated places, src."""
    yield make(3, 4), 0, make.of([[2, 0, 1, 1], [0, 1, 2, 0]]), make(2, 4)
    yield make(3, 4), -1, make.of([[3, 1]]), make(1, 2)
    yield make(4), 0, make.ints(0, 4, (0,)), make(0)
    yield make(), 0, make.of(0), make()


def _repeated(make):
    yield from _distinct(make)
    yield make(3, 4), 0, make.of([[0, 0, 1, 1], [0, 1, 1, 1]]), make(2, 4)


op(
    "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    batch=batching_index.along("scatter.src"),
    kernel="scatter",
    types="bool int float half complex",
    variants="function method inplace out",
    grad={
        "self": lambda grad, dim, index: grad.scatter(dim, index, 0),
        "src": lambda grad, dim, index, src_shape: _filled(grad.gather(dim, index), src_shape),
    },
    jvp="linear",
    samples=lambda make: [Sample(*a) for a in _distinct(make)],
    reference=_reference_scatter,
    errors=[(_bad("scatter", "src"), RuntimeError, _OUTSIDE)],
    tags="moves others_apart",
    doc="self with out[index[i, j], j] = src[i, j] for dim=0, and so on; the last of repeated places wins.",
)

op(
    "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    batch=batching_index.along("scatter.value"),
    kernel="scatter",
    types="bool int float half complex",
    variants="function method inplace out",
    grad={"self": lambda grad, dim, index: grad.scatter(dim, index, 0)},
    jvp=lambda self_tangent, dim, index: self_tangent.scatter(dim, index, 0),
    samples=lambda make: [Sample(s, d, i, 1) for s, d, i, _ in _repeated(make)],
    reference=_reference_scatter,
    tags="others_apart",
    doc="self with one value at the places that index names along a dimension.",
)

_OLD_NAMES = {"add": "sum", "multiply": "prod"}

op(
    "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    batch=batching_index.along("scatter.reduce"),
    kernel="scatter_with",
    types="bool int float half complex",
    variants="function method inplace out",
    samples=lambda make: [Sample(*a, reduce=r) for a in _repeated(make) for r in ("add", "multiply")],
    reference=_reference_scatter,
    grad={
        "self, src": lambda grad, self, dim, index, src, reduce, result: _spread(
            grad, self, dim, index, src, _OLD_NAMES[reduce], True, result
        )
    },
    jvp=lambda self, self_tangent, dim, index, src, src_tangent, reduce, result: _spread_slopes(
        self, self_tangent, dim, index, src, src_tangent, _OLD_NAMES[reduce], True, result
    ),
    gaps={"torch": "PyTorch has no derivative for it"},
    tags="others_apart",
    doc="self with src added to, or multiplied into, the places that index names.",
)

op(
    "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    batch=batching_index.along("scatter.value_reduce"),
    kernel="scatter_with",
    types="bool int float half complex",
    variants="function method inplace out",
    samples=lambda make: [Sample(s, d, i, 2, reduce=r) for s, d, i, _ in _repeated(make) for r in ("add", "multiply")],
    reference=_reference_scatter,
    grad={
        "self": lambda grad, dim, index, value, reduce: (
            grad if reduce == "add" else grad.scatter(dim, index, conj(value), reduce="multiply")
        )
    },
    jvp=forward.value_reduce,
    gaps={"torch": "PyTorch has no derivative for it"},
    tags="others_apart",
    doc="self with one value added to, or multiplied into, the places that index names.",
)

op(
    "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    batch=batching_index.along("scatter_add"),
    kernel="scatter_add",
    types="bool int float half complex",
    variants="function method inplace out",
    grad={"self": "grad", "src": lambda grad, dim, index, src_shape: _filled(grad.gather(dim, index), src_shape)},
    jvp="linear",
    samples=lambda make: [Sample(*a) for a in _repeated(make)],
    reference=_reference_add,
    errors=[(_bad("scatter_add", "src"), RuntimeError, _OUTSIDE)],
    tags="others_apart",
    doc="self with src[i, j] added to out[index[i, j], j] for dim=0, and so on; repeated places add up in order.",
)


# ---- scatter_reduce ------------------------------------------------------------------------------------------------


def _spread(grad, self, dim, index, src, reduce, include_self, result):
    """Gradients of scatter_reduce for self and src."""
    if reduce == "sum":
        to_self, to_src = grad, grad.gather(dim, index)
    elif reduce == "mean":
        share = grad / _counts(grad, dim, index, include_self)
        to_self, to_src = share, share.gather(dim, index)
    elif reduce == "prod":
        to_self, to_src = _spread_product(grad, self, dim, index, src, include_self)
    else:
        to_self, to_src = _spread_extreme(grad, self, dim, index, src, include_self, result)
    if not include_self:
        to_self = to_self.scatter(dim, index, 0)
    return to_self, _filled(to_src, src.shape)


def _spread_slopes(self, self_tangent, dim, index, src, src_tangent, reduce, include_self, result):
    """Each element goes into one result, so the gradient of ones is its factor."""
    by_self, by_src = _spread(tg.ones_like(result), self, dim, index, src, reduce, include_self, result)
    found = tg.zeros_like(result) if self_tangent is None else self_tangent * conj(by_self)
    return found if src_tangent is None else found.scatter_add(dim, index, src_tangent * conj(by_src))


def _part(src, index):
    """The part of src that is used."""
    if 0 in index.shape:
        return src.new_empty(index.shape)
    return src[tuple(slice(0, s) for s in index.shape)] if index.dim() else src


def _counts(grad, dim, index, include_self):
    """How many elements went into each mean."""
    start = index.new_ones(grad.shape) if include_self else index.new_zeros(grad.shape)
    return start.scatter_add(dim, index, index.new_ones(index.shape)).clamp(min=1)


def _same(values, result, index):
    """1 where a value is the result, which a nan is too, of the index's dtype: counted exactly, where half cannot."""
    return ((values == result) | ((values != values) & (result != result))).to(index.dtype)


def _spread_extreme(grad, self, dim, index, src, include_self, result):
    """An extreme value shares its gradient evenly among the elements that have it."""
    from_src = _same(_part(src, index), result.gather(dim, index), index)
    whole = from_self = _same(self, result, index)
    if not include_self:
        from_self = from_self.scatter(dim, index, 0)
    share = grad / from_self.scatter_add(dim, index, from_src).clamp(min=1)
    return whole * share, from_src * share.gather(dim, index)


def _spread_product(grad, self, dim, index, src, include_self):
    """The product of all other factors. Those that are zero count apart: where there is one, it is the sum of them all,
    which has the derivative that a factor of 0 lacks; where there are more, their product has none."""
    used = _part(src, index)
    base = self if include_self else self.scatter(dim, index, 1)
    zero_self, zero_src = base == 0, used == 0
    zeros = zero_self.to(index.dtype).scatter_add(dim, index, zero_src.to(index.dtype))
    nil_self, nil_src = base.masked_fill(~zero_self, 0), used.masked_fill(~zero_src, 0)
    nils = nil_self.scatter_add(dim, index, nil_src)
    base, used = base.masked_fill(zero_self, 1), used.masked_fill(zero_src, 1)
    weighted = grad * conj(base.scatter(dim, index, used, reduce="multiply"))

    def others(count, nil):
        return conj(tg.where(count == 0, 1, tg.where(count == 1, nil, 0)))

    here = zeros.gather(dim, index)
    return (
        weighted * others(zeros - zero_self.to(zeros.dtype), nils - nil_self) / conj(base),
        weighted.gather(dim, index)
        * others(here - zero_src.to(here.dtype), nils.gather(dim, index) - nil_src)
        / conj(used),
    )


def _reference_reduce(self, dim, index, src, reduce, *, include_self=True):
    import numpy

    ufunc = {"sum": numpy.add, "mean": numpy.add, "prod": numpy.multiply, "amax": numpy.maximum, "amin": numpy.minimum}[
        reduce
    ]
    start = self
    if not include_self:
        if self.dtype.kind in "fc":
            low, high = -numpy.inf, numpy.inf
        elif self.dtype.kind == "b":
            low, high = False, True
        else:
            low, high = numpy.iinfo(self.dtype).min, numpy.iinfo(self.dtype).max
        start = _reduced(self, dim, index, {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}[reduce], None)
    out = _reduced(start, dim, index, src, ufunc)
    if reduce == "mean":
        counts = _reduced(numpy.full(self.shape, int(include_self), dtype=numpy.int64), dim, index, 1, numpy.add).clip(
            1
        )
        out = out / counts if self.dtype.kind in "fc" else out // counts
    return out.astype(self.dtype)


op(
    "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    batch=batching_index.along("scatter_reduce.two"),
    kernel="scatter_reduce",
    types="bool int float half complex",
    variants="function method inplace out",
    grad={"self, src": _spread},
    jvp=_spread_slopes,
    samples=lambda make: [
        Sample(*a, r, include_self=s)
        for a in _repeated(make)
        for r in (("sum", "prod", "mean") if make.dtype.is_complex else ("sum", "prod", "mean", "amax", "amin"))
        for s in (True, False)
        if r != "mean" or make.dtype.name != "bool"
    ],
    reference=_reference_reduce,
    errors=[
        (_bad("scatter_reduce", "src", "sum"), RuntimeError, _OUTSIDE),
        (
            _bad("scatter_reduce", "src", "median"),
            RuntimeError,
            "reduce argument must be either sum, prod, mean, amax or amin",
        ),
    ],
    tags="others_apart",
    doc="self with the elements of src reduced into the places that index names: sum, prod, mean, amax or amin (also "
    "max and min). Without include_self the elements of self at these places do not count. Integer means are rounded "
    "down.",
)


# ---- take_along_dim ------------------------------------------------------------------------------------------------


def _take_along_dim(self, indices, dim):
    if indices.dtype.name != "int64":
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return self.reshape(-1).gather(0, indices.reshape(-1))
    if self.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {self.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    dim = wrapped(dim, self.dim())
    if not self.dim():
        return self.gather(0, indices)
    rest = broadcast_sizes(
        [1 if d == dim else s for d, s in enumerate(self.shape)],
        [1 if d == dim else s for d, s in enumerate(indices.shape)],
    )
    grown = [[t.shape[d] if d == dim else s for d, s in enumerate(rest)] for t in (self, indices)]
    indices = fused._from_end(indices, self.shape[dim])
    return self.expand(grown[0]).gather(dim, indices.expand(grown[1]))


def _reference_along(self, indices, dim=None):
    import numpy

    if dim is None:
        return self.reshape(-1)[indices.reshape(-1)]
    return numpy.take_along_axis(self, indices, dim)


op(
    "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    compose=_take_along_dim,
    variants="function method out",
    samples=lambda make: [
        Sample(make(3, 4), make.ints(0, 3, (1, 4)), 0),
        Sample(make(3, 4), make.ints(0, 4, (3, 2)), -1),
        Sample(make(3, 4), make.ints(-4, 4, (3, 2)), 1),
        Sample(make(3, 1), make.ints(0, 3, (2, 4)), 0),
        Sample(make(3, 4), make.ints(0, 12, (5,))),
    ],
    reference=_reference_along,
    doc="gather whose operands broadcast outside `dim`; without dim over all elements as one vector.",
)
