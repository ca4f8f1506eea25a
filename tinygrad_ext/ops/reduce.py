"""Reductions: sum, mean, prod, any, all, and the largest and smallest elements.

Sums run in double or int64 and in an order given by the logical index alone, see kernels/reduce.h.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching, forward
from tinygrad_ext.ops.folding import by_numpy, divisor, filled, one_dim, sized_dims, some_dims, spread, unfold, whole
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.ops.scan import before

_OUT = "function method out"
_ALL_DTYPES = "bool int float half complex"


def _call(name, *shape, of="float32", **kwargs):
    """A call of an op on zeros that is meant to raise."""

    def call():
        return getattr(tg, name)(tg.zeros(*shape, dtype=getattr(tg, of)), **kwargs)

    return call


def _ints(name, **kwargs):
    def call():
        return getattr(tg, name)(tg.tensor([1, 2]), **kwargs)

    return call


_TWICE = (_call("sum", (2, 3), dim=(0, -2)), RuntimeError, "dim 0 appears multiple times in the list of dims")
_FAR = (
    _call("sum", (2, 3), dim=2),
    IndexError,
    "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
)


def _with_dtype(make):
    yield from whole(make)
    if not make.dtype.is_complex:
        yield Sample(make(2, 3), dtype=tg.float64)


def _dims_with_dtype(make):
    yield from sized_dims(make)
    if not make.dtype.is_complex:
        yield Sample(make(2, 3), 0, dtype=tg.float64)


# ---- sums ----------------------------------------------------------------------------------------------------------

op(
    "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=batching.whole_sum("sum"),
    kernel="sum",
    types=_ALL_DTYPES,
    variants=_OUT,
    grad={"self": "expand(grad, self_shape)"},
    jvp="linear",
    samples=_with_dtype,
    reference=by_numpy("sum"),
    tags="adopts",
    doc="Sum of all elements. Integers and bool add up in int64, float32 and half floats in double.",
)

op(
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="sum_dim",
    types=_ALL_DTYPES,
    variants=_OUT,
    grad={"self": lambda grad, self_shape, dim, keepdim: spread(grad, self_shape, dim, keepdim)},
    jvp="linear",
    samples=_dims_with_dtype,
    reference=by_numpy("sum"),
    errors=[_TWICE, _FAR],
    tags="adopts",
    doc="Sum along the dimensions dim (all for None or an empty list), which go away or with keepdim stay at size 1.",
)

op(
    "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="nansum",
    variants=_OUT,
    grad={"self": lambda grad, self, dim, keepdim: spread(grad, self.shape, dim, keepdim) * (self == self)},
    jvp="reduce",
    samples=sized_dims,
    reference=by_numpy("nansum"),
    tags="adopts",
    doc="Sum that takes NaN as zero.",
)

op(
    "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=batching.whole_sum("mean"),
    kernel="mean",
    types="float half complex",
    variants=_OUT,
    grad={"self": lambda grad, self_shape: (grad / divisor(self_shape, None)).expand(self_shape)},
    jvp="linear",
    samples=_with_dtype,
    reference=by_numpy("mean"),
    errors=[
        (
            _ints("mean"),
            RuntimeError,
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            "complex dtype. Got: Long",
        )
    ],
    tags="adopts",
    doc="Mean of all elements; NaN when there are none. RuntimeError for integers unless a floating dtype is given.",
)

op(
    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="mean_dim",
    types="float half complex",
    variants=_OUT,
    grad={
        "self": lambda grad, self_shape, dim, keepdim: spread(grad / divisor(self_shape, dim), self_shape, dim, keepdim)
    },
    jvp="linear",
    samples=_dims_with_dtype,
    reference=by_numpy("mean"),
    tags="adopts",
    doc="Mean along the dimensions dim (all for None or an empty list).",
)


# ---- products ------------------------------------------------------------------------------------------------------


def _other_factors(self, dim):
    """For each element, the product of the others along dim: before it times after it, so zeros do no harm."""
    if self.dtype in (tg.float32, tg.float64) or self.dtype.is_complex:
        return self._prod_others(dim)
    return before(self, dim) * before(self.flip(dim), dim).flip(dim)


def _prod_back(grad, self, dtype):
    self = self if dtype is None else self.to(dtype)
    if self.dim() == 1:
        return grad * _other_factors(self, 0)
    return grad * _other_factors(self.reshape(-1), 0).reshape(self.shape)


def _prod_dim_back(grad, self, dim, keepdim, dtype):
    self = self if dtype is None else self.to(dtype)
    return unfold(grad, self.shape, dim, keepdim) * (_other_factors(self, dim) if self.dim() else 1)


def _factors(make):
    yield from whole(make)
    yield Sample(make.like([2, 0, 3]))
    yield Sample(make.like([[2, 0, 3], [0, 0, 1]]))


def _factors_along(make):
    for sample in one_dim(make):
        if make.dtype.is_complex and sample.args[0].numel() > 100:  # whose product of distinct numbers overflows
            sample = Sample(make(70, 3, low=-1, high=1), **sample.kwargs)
        yield sample
    yield Sample(make.like([[2, 0, 3], [0, 0, 1], [1, 2, 3]]), 1)
    yield Sample(make.like([[2, 0, 3], [0, 0, 1], [1, 2, 3]]), -2, True)
    yield Sample(make(0, 3), 0)


op(
    "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=batching.whole_sum("prod"),
    kernel="prod",
    variants=_OUT,
    holomorphic=True,
    grad={"self": _prod_back},
    jvp="reduce",
    samples=_factors,
    domain=(-2, 2),
    reference=by_numpy("prod"),
    tags="adopts",
    doc="Product of all elements, 1 when there are none. Integers and bool multiply in int64, float32 in double.",
)

op(
    "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    batch="dims",
    kernel="prod_dim",
    variants=_OUT,
    holomorphic=True,
    grad={"self": _prod_dim_back},
    jvp="reduce",
    samples=_factors_along,
    domain=(-2, 2),
    reference=by_numpy("prod"),
    tags="adopts",
    doc="Product along dim.",
)


# ---- truth ---------------------------------------------------------------------------------------------------------


def _truths(make):
    yield from sized_dims(make)
    yield Sample(make(2, 3), dim=())


def _truth_reference(name):
    numpy_version = by_numpy(name)

    def reference(x, dim=None, keepdim=False):
        if isinstance(dim, (tuple, list)) and not dim:
            return x != 0
        return numpy_version(x, dim, keepdim)

    return reference


for _name, _doc in (
    ("any", "Whether some element is not zero (NaN is not); False when there are none."),
    ("all", "Whether no element is zero; True when there are none."),
):
    op(
        f"aten::{_name}(Tensor self) -> Tensor",
        batch=batching.whole(_name),
        kernel=_name,
        types=_ALL_DTYPES,
        variants=_OUT,
        samples=whole,
        reference=_truth_reference(_name),
        tags="bytes",
        doc=_doc,
    )
    op(
        f"aten::{_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        batch="dims",
        kernel=_name + "_dim",
        types=_ALL_DTYPES,
        variants=_OUT,
        samples=one_dim,
        reference=_truth_reference(_name),
        tags="bytes",
        doc=_doc,
    )
    op(
        f"aten::{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        batch="dims",
        kernel=_name + "_dim",
        types=_ALL_DTYPES,
        variants=_OUT,
        samples=_truths,
        reference=_truth_reference(_name),
        tags="bytes",
        doc=_doc + " An empty list of dims reduces nothing.",
    )

op(
    "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor",
    batch=batching.count_nonzero,
    kernel="count_nonzero",
    types=_ALL_DTYPES,
    samples=lambda make: [
        Sample(make(3, 4)),
        Sample(make(3, 4), 0),
        Sample(make(3, 4), dim=-1),
        Sample(make()),
        Sample(make(0, 2)),
    ],
    reference=by_numpy("count_nonzero"),
    doc="Number of elements that are not zero, in all or along dim.",
)

op(
    "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    batch="dims",
    kernel="count_nonzero",
    types=_ALL_DTYPES,
    samples=lambda make: [Sample(make(3, 4), (0, 1)), Sample(make(2, 3, 4), (0, 2))],
    reference=by_numpy("count_nonzero"),
    doc="Number of elements that are not zero, along several dimensions.",
)


# ---- largest and smallest ------------------------------------------------------------------------------------------


def _share(grad, self, result):
    """The gradient of max() in equal parts to all elements that are the largest; of a NaN, to all NaN."""
    chosen = (self == result) | ((self != self) & (result != result))
    return grad / chosen.sum() * chosen


def _share_dims(grad, self, result, dim, keepdim):
    result = unfold(result, self.shape, dim, keepdim)
    chosen = (self == result) | ((self != self) & (result != result))
    return unfold(grad, self.shape, dim, keepdim) * chosen / chosen.sum(dim, keepdim=True)


def select_back(grad, shape, dim, keepdim, indices):
    """The gradient of picking elements along dim, at their places in zeros."""
    if not shape:
        return grad
    return grad.new_zeros(shape).scatter(dim, unfold(indices, shape, dim, keepdim), unfold(grad, shape, dim, keepdim))


def _not_empty(make):
    for sample in some_dims(make):
        if sample.args[0].dim() < 2 or sample.args[0].shape[0]:
            yield sample


def _pair_reference(name):
    def reference(x, dim, keepdim=False):
        import numpy

        axis = None if x.ndim == 0 else dim
        index = getattr(numpy, "arg" + name)(x, axis=axis, keepdims=keepdim)
        return getattr(numpy, name)(x, axis=axis, keepdims=keepdim), index

    return reference


for _name, _word in (("max", "largest"), ("min", "smallest")):
    op(
        f"aten::{_name}(Tensor self) -> Tensor",
        batch=batching.whole("a" + _name),
        kernel=_name,
        variants=_OUT,
        grad={"self": _share},
        jvp="reduce",
        samples=filled,
        reference=by_numpy(_name),
        errors=[
            (
                _call(_name, (0, 3)),
                RuntimeError,
                f"{_name}(): Expected reduction dim to be specified for input.numel() == 0",
            )
        ],
        tags="casts",
        doc=f"The {_word} element; NaN when there is one. The gradient goes in equal parts to equal elements.",
    )
    op(
        f"aten::{_name}.other(Tensor self, Tensor other) -> Tensor",
        compose=(lambda self, other: self.maximum(other))
        if _name == "max"
        else (lambda self, other: self.minimum(other)),
        variants="function method out",
        samples=lambda make: [Sample(make(3, 4), make(4)), Sample(make(2), make(2))],
        reference=f"numpy.{_name}imum",
        tags="casts",
        doc=f"The {_word} of two elements each, with broadcasting.",
    )
    op(
        f"aten::{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        batch="dims",
        kernel=_name + "_dim",
        variants=_OUT,
        grad={
            "self": lambda grad, self_shape, dim, keepdim, indices: select_back(grad, self_shape, dim, keepdim, indices)
        },
        jvp=forward.reduced,
        samples=one_dim,
        reference=_pair_reference(_name),
        errors=[
            (_call(_name, (0, 3), dim=0), IndexError, f"{_name}(): Expected reduction dim 0 to have non-zero size")
        ],
        doc=f"The {_word} elements along dim and their indices: the first of equal ones, the first NaN.",
    )
    op(
        f"aten::a{_name}(Tensor self, int[1]? dim=[], bool keepdim=False) -> Tensor",
        batch="dims",
        kernel="a" + _name,
        variants=_OUT,
        grad={"self": _share_dims},
        jvp="reduce",
        samples=lambda make: [*_not_empty(make), Sample(make(2, 3), None)],
        reference=by_numpy(_name),
        doc=f"The {_word} elements along one or several dimensions; equal ones share the gradient.",
    )
    op(
        f"aten::arg{_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        batch=batching.place_of("arg" + _name),
        kernel="arg" + _name,
        types="int float",
        variants=_OUT,
        samples=lambda make: [*filled(make), *one_dim(make), Sample(make.distinct(2, 3), keepdim=True)],
        reference=by_numpy("arg" + _name),
        errors=[
            (_call("arg" + _name, (0,)), IndexError, "Expected reduction dim to be specified for input.numel() == 0"),
            (_call("arg" + _name, (3,), of="bool"), RuntimeError, "does not support bool input"),
        ],
        doc=f"Index of the {_word} element along dim, or in the flattened tensor: the first of equal ones, "
        "the first NaN.",
    )
