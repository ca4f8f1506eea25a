"""Comparisons, choosing, larger and smaller."""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _tensors(make):
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((0, 3), (3,)), ((), ())):
        yield Sample(make(*a), make(*b))


def _pairs(make):
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((0, 3), (3,)), ((), ())):
        yield Sample(make(*a), make(*b))
    same = make(3, 4)
    yield Sample(same, same)
    yield Sample(make(3, 4), 1)


op(
    "aten::eq.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int natural float half complex": "x == y"},
    returns="bool",
    operator="eq",
    numbers="other",
    samples=_pairs,
    reference="numpy.equal",
    doc="self == other, element by element.",
)

op(
    "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int natural float half complex": "x != y"},
    returns="bool",
    operator="ne",
    numbers="other",
    aliases="not_equal",
    samples=_pairs,
    reference="numpy.not_equal",
    doc="self != other, element by element.",
)

op(
    "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int float half": "x < y"},
    returns="bool",
    operator="lt",
    numbers="other",
    aliases="less",
    samples=_pairs,
    reference="numpy.less",
    doc="self < other, element by element.",
)

op(
    "aten::le.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int float half": "x <= y"},
    returns="bool",
    operator="le",
    numbers="other",
    aliases="less_equal",
    samples=_pairs,
    reference="numpy.less_equal",
    doc="self <= other, element by element.",
)

op(
    "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int float half": "x > y"},
    returns="bool",
    operator="gt",
    numbers="other",
    aliases="greater",
    samples=_pairs,
    reference="numpy.greater",
    doc="self > other, element by element.",
)

op(
    "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int float half": "x >= y"},
    returns="bool",
    operator="ge",
    numbers="other",
    aliases="greater_equal",
    samples=_pairs,
    reference="numpy.greater_equal",
    doc="self >= other, element by element.",
)

# ---- NaN and infinity ----------------------------------------------------------------------------------------------

op(
    "aten::isnan(Tensor self) -> Tensor",
    scalar={"bool int natural": "0", "float half": "x != x", "complex": "x != x"},
    returns="bool",
    variants="function method",
    reference="numpy.isnan",
    doc="Whether each element is NaN.",
)

op(
    "aten::isinf(Tensor self) -> Tensor",
    scalar={
        "bool int natural": "0",
        "float half": "fabs(x) == INFINITY",
        "complex": "fabs(creal(x)) == INFINITY || fabs(cimag(x)) == INFINITY",
    },
    returns="bool",
    variants="function method",
    reference="numpy.isinf",
    doc="Whether each element is positive or negative infinity.",
)

op(
    "aten::isfinite(Tensor self) -> Tensor",
    scalar={
        "bool int natural": "1",
        "float half": "fabs(x) < INFINITY",
        "complex": "fabs(creal(x)) < INFINITY && fabs(cimag(x)) < INFINITY",
    },
    returns="bool",
    variants="function method",
    reference="numpy.isfinite",
    doc="Whether each element is neither infinite nor NaN.",
)

op(
    "aten::isposinf(Tensor self) -> Tensor",
    scalar={"bool int natural": "0", "float": "x == INFINITY"},
    returns="bool",
    variants="function method out",
    reference="numpy.isposinf",
    refuses={"out": "isposinf does not support non-boolean outputs: out= is {got}"},
    tags="exact",
    doc="Whether each element is positive infinity.",
)

op(
    "aten::isneginf(Tensor self) -> Tensor",
    scalar={"bool int natural": "0", "float": "x == -INFINITY"},
    returns="bool",
    variants="function method out",
    reference="numpy.isneginf",
    refuses={"out": "isneginf does not support non-boolean outputs: out= is {got}"},
    tags="exact",
    doc="Whether each element is negative infinity.",
)


def _of_numbers(grad, self):
    """What moves a part of an element moves the result where that part is a number."""
    if not self.dtype.is_complex:
        return grad * self.isfinite()
    return tg.complex(grad.real * self.real.isfinite(), grad.imag * self.imag.isfinite())


op(
    "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    scalar={
        "bool int natural": "x",
        "float half": "AS_NUMBER(x, (has_nan ? nan : 0), (has_posinf ? posinf : LARGEST), "
        "(has_neginf ? neginf : -LARGEST))",
        "complex": "parts",
    },
    variants="function method inplace out function_",
    grad={"self": _of_numbers},
    jvp=lambda self_tangent, self: _of_numbers(self_tangent, self),
    reference="numpy.nan_to_num",
    tags="exact",
    doc="Elements with NaN replaced by `nan` (0), infinities by `posinf` and `neginf` (the dtype's "
    "largest finite numbers); of complex elements in each part by itself.",
)

# ---- choosing ------------------------------------------------------------------------------------------------------


op(
    "aten::maximum(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int": "x > y ? x : y", "float": "(x > y) | (x != x) ? x : y"},
    grad={"self": "chosen(grad, self, other)", "other": "chosen(grad, other, self)"},
    variants="function method out",
    samples=_tensors,
    reference="numpy.maximum",
    refuses={"complex": "maximum not implemented for complex tensors: they have no order"},
    doc="The larger of two elements, or NaN where one is NaN. Where they are equal each gets half of the gradient.",
)

op(
    "aten::minimum(Tensor self, Tensor other) -> Tensor",
    scalar={"bool int": "x < y ? x : y", "float": "(x < y) | (x != x) ? x : y"},
    grad={"self": "chosen(grad, other, self)", "other": "chosen(grad, self, other)"},
    variants="function method out",
    samples=_tensors,
    reference="numpy.minimum",
    refuses={"complex": "minimum not implemented for complex tensors: they have no order"},
    doc="The smaller of two elements, or NaN where one is NaN. Where they are equal each gets half of the gradient.",
)

op(
    "aten::chosen(Tensor grad, Tensor larger, Tensor smaller) -> Tensor",
    scalar={"float": "y == z ? x / 2 : y < z ? 0 : x"},
    grad={"grad": "chosen(grad, larger, smaller)"},
    variants="function",
    where="_fused",
    doc="The gradient where `larger` is the larger one, half of it where both are equal, else zero.",
)


def _wheres(make):
    yield Sample(make.bools(3, 4), make(3, 4), make(3, 4))
    yield Sample(make.bools(3, 1), make(4), make(()))
    yield Sample(make.bools(0, 2), make(2), make(1))


op(
    "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    scalar={"bool int natural float half complex": "x ? y : z"},
    inputs={"condition": "bool"},
    grad={
        "self": lambda grad, condition: fused.where(condition, grad, 0),
        "other": lambda grad, condition: fused.where(condition, 0, grad),
    },
    numbers="self other",
    variants="function out",
    reference="numpy.where",
    samples=_wheres,
    refuses={
        "inputs": "where expected condition to be a boolean tensor: compare first, for example condition != 0",
        "outside": "a number to choose",
    },
    errors=[
        (lambda: fused.where(tg.tensor([1.0]), 1, 2), RuntimeError, "condition to be a boolean"),
        (lambda: tg.where(tg.tensor(True), tg.tensor([1], dtype=tg.int8), 300), RuntimeError, "without overflow"),
    ],
    tags="moves exact",
    doc="Elements of self where condition is true, else those of other; all three broadcast.",
)


def _limits(make):
    for low, high in ((1, 3), (None, 1), (0, None), (2, 1)):
        yield Sample(make(3, 4), low, high)
    yield Sample(make(0, 3), min=0)
    yield Sample(make(()), max=1)


def _tensor_limits(make):
    yield Sample(make(3, 4), make(4, low=0, high=1), make(3, 1, low=1, high=2))
    yield Sample(make(3, 4), max=make(4))
    yield Sample(make(3, 4), make(()))


def _clip(x, min=None, max=None):
    import numpy

    x = x if min is None else numpy.maximum(x, min)
    return x if max is None else numpy.minimum(x, max)


def _clamp_tensors(self, min, max):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is None or max is None:
        return self.clamp_max(max) if min is None else self.clamp_min(min)
    return fused.clamp_between(self, min, max)


def _tensor_pairs(make):
    yield Sample(make(3, 4), make(4, low=0, high=1), make(3, 1, low=1, high=2))
    yield Sample(make(3, 4), make(4, low=1, high=2), make(()))
    yield Sample(make(0, 3), make(3), make(()))


op(
    "aten::clamp_between(Tensor self, Tensor min, Tensor max) -> Tensor",
    scalar={
        "bool int": "(x < y ? y : x) > z ? z : x < y ? y : x",
        "float": "(((x < y) | (y != y) ? y : x) > z) | (z != z) ? z : (x < y) | (y != y) ? y : x",
    },
    types="bool int float",
    where="_fused",
    variants="function",
    grad={
        "self": lambda grad, self, min, max: grad * ((self >= min) & (self <= max)),
        "min": lambda grad, self, min, max: grad * ((self < min) & (min < max)),
        "max": lambda grad, self, min, max: grad * (self.maximum(min) > max),
    },
    samples=_tensor_pairs,
    reference=_clip,
    doc="Elements limited to ranges given element by element, of which the upper limit wins.",
)


op(
    "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    compose=_clamp_tensors,
    types="bool int float",
    aliases="clip",
    variants="function method inplace out function_",
    samples=_tensor_limits,
    reference=_clip,
    tags="casts",
    doc="Elements limited to ranges given element by element.",
)

# Both limits as min(max(x, min), max), so that max wins; a NaN limit makes everything NaN.
op(
    "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    scalar={
        "int": {
            "has_min && has_max": "(x < min ? min : x) > max ? max : x < min ? min : x",
            "has_min": "x < min ? min : x",
            "has_max": "x > max ? max : x",
            "else": "FAIL(TGX_BAD_VALUE)",
        },
        "float": {
            "(has_min && min != min) || (has_max && max != max)": "NAN",
            "has_min && has_max": "(x < min ? min : x) > max ? max : x < min ? min : x",
            "has_min": "x < min ? min : x",
            "has_max": "x > max ? max : x",
            "else": "FAIL(TGX_BAD_VALUE)",
        },
    },
    promote="scalars",
    failure="torch.clamp: At least one of 'min' or 'max' must not be None",
    grad={"self": "clamp_backward(grad, self, min, max)"},
    aliases="clip",
    variants="function method inplace out function_",
    reference=_clip,
    samples=_limits,
    errors=[(lambda: tg.tensor([1.0]).clamp(), RuntimeError, "At least one of 'min' or 'max'")],
    doc="Elements limited to the range from min to max; max wins where min is above it.",
)

op(
    "aten::clamp_backward(Tensor grad, Tensor self, Scalar? min, Scalar? max) -> Tensor",
    scalar={"float": "(has_min && y < min) || (has_max && y > max) ? 0 : x"},
    grad={"grad": "clamp_backward(grad, self, min, max)"},
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), make(3, 4), -1, 1)],
    doc="The gradient where self is inside the limits, else zero.",
)

op(
    "aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    scalar={"bool int": "x < y ? y : x", "float": "(x < y) | (y != y) ? y : x"},
    variants="function method inplace out function_",
    grad={"self": lambda grad, self, min: grad * (self >= min), "min": lambda grad, self, min: grad * (self < min)},
    reference="numpy.maximum",
    doc="Elements not below those of min.",
)

op(
    "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
    scalar={"int": "x < min ? min : x", "float": "(x < min) | (min != min) ? min : x"},
    promote="scalars",
    variants="function method inplace out function_",
    grad={"self": lambda grad, self, min: fused.clamp_backward(grad, self, min, None)},
    samples=lambda make: [Sample(make(3, 4), 1), Sample(make(0), 1)],
    reference="numpy.maximum",
    doc="Elements not below min.",
)

op(
    "aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    scalar={"bool int": "x > y ? y : x", "float": "(x > y) | (y != y) ? y : x"},
    variants="function method inplace out function_",
    grad={"self": lambda grad, self, max: grad * (self <= max), "max": lambda grad, self, max: grad * (self > max)},
    reference="numpy.minimum",
    doc="Elements not above those of max.",
)

op(
    "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
    scalar={"int": "x > max ? max : x", "float": "(x > max) | (max != max) ? max : x"},
    promote="scalars",
    variants="function method inplace out function_",
    grad={"self": lambda grad, self, max: fused.clamp_backward(grad, self, None, max)},
    samples=lambda make: [Sample(make(3, 4), 1), Sample(make(0), 1)],
    reference="numpy.minimum",
    doc="Elements not above max.",
)
