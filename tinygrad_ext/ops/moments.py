"""Reductions made of several: variance, logsumexp, medians, both ends, and whether two tensors are equal."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching, forward
from tinygrad_ext.ops.folding import (
    by_numpy,
    filled,
    numpy_axis,
    one_dim,
    ratio,
    reduced_count,
    spread,
    unfold,
)
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.reduce import _share, select_back
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.ops.shapes import reduced

_OUT = "function method out"


# ---- variance ------------------------------------------------------------------------------------------------------


@in_float
def _var_back(grad, self, dim, correction, keepdim):
    """2 (self - mean) / (n - correction), for each result."""
    freedom = reduced_count(self.shape, dim) - correction
    mean = self.mean(dim, keepdim=True)
    return unfold(grad, self.shape, dim, keepdim) * ratio(2.0, freedom) * (self - mean)


@in_float
def _std_back(grad, self, result, dim, correction, keepdim):
    """The derivative of the root; zero where the deviation is zero, though it has none there."""
    flat = result == 0
    return _var_back(grad / (2 * (result + flat)) * ~flat, self, dim, correction, keepdim)


def _with_mean(back):
    """The joint derivative of (spread, mean) from that of the spread alone."""

    @in_float
    def rule(grads, self, result, dim, correction, keepdim):
        total = None if grads[0] is None else back(grads[0], self, result, dim, correction, keepdim)
        if grads[1] is None:
            return total
        mean = spread(grads[1] / reduced_count(self.shape, dim), self.shape, dim, keepdim)
        return mean if total is None else total + mean

    return rule


_BACK = {
    "var": lambda grad, self, result, dim, correction, keepdim: _var_back(grad, self, dim, correction, keepdim),
    "std": _std_back,
}
_BACK["var_mean"], _BACK["std_mean"] = _with_mean(_BACK["var"]), _with_mean(_std_back)


def _grads(name):
    """Derivative rules of the three overloads."""
    back = _BACK[name]
    if name == "var":
        return (
            lambda grad, self, unbiased: _var_back(grad, self, None, int(unbiased), False),
            lambda grad, self, dim, unbiased, keepdim: _var_back(grad, self, dim, int(unbiased), keepdim),
            lambda grad, self, dim, correction, keepdim: _var_back(grad, self, dim, _default(correction), keepdim),
        )
    if name == "var_mean":
        return (
            lambda grads, self, unbiased: back(grads, self, None, None, int(unbiased), False),
            lambda grads, self, dim, unbiased, keepdim: back(grads, self, None, dim, int(unbiased), keepdim),
            lambda grads, self, dim, correction, keepdim: back(grads, self, None, dim, _default(correction), keepdim),
        )
    if name == "std":
        return (
            lambda grad, self, result, unbiased: back(grad, self, result, None, int(unbiased), False),
            lambda grad, self, result, dim, unbiased, keepdim: back(grad, self, result, dim, int(unbiased), keepdim),
            lambda grad, self, result, dim, correction, keepdim: back(
                grad, self, result, dim, _default(correction), keepdim
            ),
        )
    return (
        lambda grads, self, result, unbiased: back(grads, self, result, None, int(unbiased), False),
        lambda grads, self, result, dim, unbiased, keepdim: back(grads, self, result, dim, int(unbiased), keepdim),
        lambda grads, self, result, dim, correction, keepdim: back(
            grads, self, result, dim, _default(correction), keepdim
        ),
    )


def _default(correction):
    return 1 if correction is None else correction


def _var_reference(name):
    first, _, pair = name.partition("_")

    def reference(x, dim=None, unbiased=True, keepdim=False, correction=None):
        import numpy

        if isinstance(dim, bool):
            dim, unbiased = None, dim
        ddof = int(unbiased) if correction is None else correction
        axis = numpy_axis(x, dim)
        value = getattr(numpy, first)(x, axis=axis, ddof=ddof, keepdims=keepdim)
        return (value, numpy.mean(x, axis=axis, keepdims=keepdim)) if pair else value

    return reference


def _spreads(make):
    for shape in ((3, 4), (5,), (2, 1, 3), (40, 67)):
        yield Sample(make(*shape))
    yield Sample(make(3, 4), False)
    yield Sample(make(3, 4), unbiased=False)


def _spreads_along(make):
    for dim in (0, -1, (0, 1), [1]):
        yield Sample(make(3, 4), dim)
        yield Sample(make(3, 4), dim, False, True)
    yield Sample(make(2, 3, 4), (0, 2), keepdim=True, unbiased=True)


def _spreads_corrected(make):
    for dim in (0, -1, (0, 1), None):
        yield Sample(make(3, 4), dim, correction=0)
        yield Sample(make(3, 4), dim=dim, correction=1.5, keepdim=True)
    yield Sample(make(70, 3), dim=0, correction=None)


def _int_call(name):
    def call():
        return getattr(tg, name)(tg.tensor([1, 2]))

    return call, RuntimeError, "std and var only support floating point and complex dtypes"


def _complex_correction(name):
    def call():
        return getattr(tg, name)(tg.tensor([1.0, 2.0]), 0, correction=1j)

    return call, RuntimeError, "the correction is taken off a count and must be real"


for _name, _doc in (
    ("var", "Variance"),
    ("std", "Standard deviation"),
    ("var_mean", "Variance and mean"),
    ("std_mean", "Standard deviation and mean"),
):
    _pair = _name.endswith("mean")
    _returns, _variants = ("(Tensor, Tensor)", "function") if _pair else ("Tensor", _OUT)
    _doc += (
        " of all elements or along dim. The divisor is n - correction: 1 (unbiased) unless told otherwise; NaN or "
        "infinite, with a warning, where that is not positive."
    )
    _rules = _grads(_name)
    op(
        f"aten::{_name}(Tensor self, bool unbiased=True) -> {_returns}",
        batch=batching.whole_moment(_name),
        kernel=_name,
        types="float complex",
        variants=_variants.replace(" out", ""),
        grad={"self": in_float(_rules[0])},
        jvp="reduce",
        samples=_spreads,
        reference=_var_reference(_name),
        errors=[_int_call(_name)],
        doc=_doc,
    )
    op(
        f"aten::{_name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {_returns}",
        batch="dims",
        kernel=_name + "_dim",
        types="float complex",
        variants=_variants,
        grad={"self": in_float(_rules[1])},
        jvp="reduce",
        samples=_spreads_along,
        reference=_var_reference(_name),
        tags="casts",
        doc=_doc,
    )
    op(
        f"aten::{_name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
        f"-> {_returns}",
        batch="dims",
        kernel=_name + "_correction",
        types="float complex",
        variants=_variants,
        grad={"self": in_float(_rules[2])},
        jvp="reduce",
        samples=_spreads_corrected,
        reference=_var_reference(_name),
        errors=[_complex_correction(_name)],
        tags="casts",
        doc=_doc,
    )


# ---- logsumexp -----------------------------------------------------------------------------------------------------


def _logsumexp(self, dim, keepdim):
    """Shifted by the largest element, so that exp does not overflow; an infinite one is not subtracted."""
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        self = self.to(tg.get_default_dtype())
    if self.numel() == 0:
        return self.sum(dim, keepdim).log()
    top = (self.real if self.dtype.is_complex else self).amax(dim, True)
    top = top.masked_fill(top.isinf(), 0)
    return (self - top).exp().sum(dim, keepdim).log() + (top if keepdim else top.sum(dim))


def _logsumexp_back(grad, self, result, dim, keepdim):
    """grad times softmax; zero where every term is zero."""
    result = unfold(result, self.shape, dim, keepdim)
    return unfold(grad, self.shape, dim, keepdim) * (self - result.masked_fill(result == float("-inf"), 0)).exp()


def _logsumexp_shape(self, dim, keepdim=False):
    fractions = self.dtype.is_floating_point or self.dtype.is_complex
    return reduced(self, dim, keepdim, dtype=self.dtype if fractions else tg.get_default_dtype())


def _logsumexp_reference(x, dim, keepdim=False):
    import numpy

    x, axis = x.astype(numpy.complex128 if x.dtype.kind == "c" else numpy.float64), numpy_axis(x, dim)
    top = numpy.nan_to_num(x.real.max(axis=axis, keepdims=True), posinf=0, neginf=0)
    value = numpy.log(numpy.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return value if keepdim else value.squeeze(axis)


def _exponents(make):
    yield from one_dim(make)
    yield Sample(make(2, 3, 4), (0, -1))
    yield Sample(make(2, 3), [0, 1], True)
    if make.dtype.is_floating_point:
        yield Sample(
            make.of([[float("-inf"), 1.0], [float("-inf")] * 2, [float("inf"), 0.0], [800.0, 800.0]], make.dtype), 1
        )


op(
    "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    batch="dims",
    kernel=_logsumexp,
    types="bool int float complex",
    variants=_OUT,
    shape=_logsumexp_shape,
    holomorphic=True,
    grad={"self": _logsumexp_back},
    jvp="reduce",
    samples=_exponents,
    reference=_logsumexp_reference,
    aliases="special.logsumexp",
    tags="casts",
    doc="log(sum(exp(self))) along dim, without overflow.",
)


# ---- medians -------------------------------------------------------------------------------------------------------


def _median_reference(name):
    skip = name == "nanmedian"

    def reference(x, dim=None, keepdim=False):
        import numpy

        axis = None if x.ndim == 0 or dim is None else dim
        order = numpy.argsort(x, axis=axis, kind="stable")
        count = order.size if axis is None else x.shape[axis]
        index = numpy.take(order, (count - 1) // 2, axis=axis)
        if axis is None:
            value = x.reshape(-1)[index]
            return value if dim is None else (value, index)
        index = numpy.expand_dims(index, axis)
        value = numpy.take_along_axis(x, index, axis)
        return (value, index) if keepdim else (value.squeeze(axis), index.squeeze(axis))

    return reference if not skip else None


for _name, _doc in (
    ("median", "Lower median; NaN when there is one."),
    ("nanmedian", "Lower median of what is not NaN."),
):
    op(
        f"aten::{_name}(Tensor self) -> Tensor",
        batch=batching.whole_middle(_name),
        kernel=_name,
        types="int float",
        grad={"self": _share},
        jvp="reduce",
        samples=filled,
        reference=_median_reference(_name),
        doc=_doc + " Equal elements share the gradient.",
    )
    op(
        f"aten::{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        batch="dims",
        kernel=_name + "_dim",
        types="int float",
        variants=_OUT,
        grad={
            "self": lambda grad, self_shape, dim, keepdim, indices: select_back(grad, self_shape, dim, keepdim, indices)
        },
        jvp=forward.reduced,
        samples=one_dim,
        reference=_median_reference(_name),
        doc=_doc + " Along dim, with its index.",
    )


# ---- both ends, whole tensors --------------------------------------------------------------------------------------


def _aminmax(self, dim, keepdim):
    if dim is None and self.numel() == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity: "
            f"self has shape {list(self.shape)}"
        )
    dims = () if dim is None else (dim,)
    return self.amin(dims, keepdim), self.amax(dims, keepdim)


def _aminmax_reference(x, dim=None, keepdim=False):
    return by_numpy("min")(x, dim, keepdim), by_numpy("max")(x, dim, keepdim)


def _ends(make):
    for shape, dim in (((3, 4), 0), ((3, 4), -1), ((), 0), ((0, 3), 1), ((2, 3, 4), 1), ((3, 4), None), ((), None)):
        yield Sample(make.distinct(*shape), dim=dim)
        yield Sample(make.distinct(*shape), dim=dim, keepdim=True)


op(
    "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    compose=_aminmax,
    variants=_OUT,
    samples=_ends,
    reference=_aminmax_reference,
    doc="Smallest and largest elements along dim, or of all.",
)


def _equal(self, other):
    return self.shape == other.shape and bool((self == other).all())


def _same_and_not(make):
    x = make(3, 4)
    yield Sample(x, x.clone())
    yield Sample(x, make(3, 4))
    yield Sample(make(), make())
    yield Sample(make(0, 3), make(0, 3))


op(
    "aten::equal(Tensor self, Tensor other) -> bool",
    compose=_equal,
    types="bool int float half complex",
    reference="numpy.array_equal",
    samples=lambda make: [*_same_and_not(make), Sample(make(2), make(3)), Sample(make(1), make(3))],
    gaps={"shape": "a bool needs data"},
    doc="Whether both tensors have the same shape and elements; a NaN equals nothing.",
)
