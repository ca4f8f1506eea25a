"""Three operands combined in one pass: sums with a product or a quotient, and points between two ends."""

import tinygrad_ext as tg
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _times(tensor, value):
    return tensor if value == 1 else tensor * value


op(
    "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    older="self value tensor1 tensor2",
    scalar={
        "int float": {"value == 1": "x + y * z", "else": "x + value * y * z"},
        "complex": {"value == 1": "x + TIMES(y, z)", "else": "x + TIMES(TIMES(value, y), z)"},
    },
    holomorphic=True,
    grad={
        "self": "grad",
        "tensor1": in_float(lambda grad, tensor2, value: grad * _times(tensor2, value)),
        "tensor2": in_float(lambda grad, tensor1, value: grad * _times(tensor1, value)),
    },
    reference=lambda x, y, z, value=1: x + value * y * z,
    errors=[
        (lambda: tg.tensor([1]).addcmul(tg.tensor([1]), tg.tensor([1]), value=0.5), RuntimeError, "value must not be")
    ],
    doc="self + value * tensor1 * tensor2, element by element.",
)

op(
    "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    older="self value tensor1 tensor2",
    scalar={
        "float": {"value == 1": "x + y / z", "else": "x + value * y / z"},
        "complex": {"value == 1": "x + div(y, z)", "else": "x + div(TIMES(value, y), z)"},
    },
    holomorphic=True,
    domain=((-4, 4), (-4, 4), (0.5, 4)),
    grad={
        "self": "grad",
        "tensor1": in_float(lambda grad, tensor2, value: grad * (value / tensor2)),
        "tensor2": in_float(lambda grad, tensor1, tensor2, value: -grad * (value * tensor1 / (tensor2 * tensor2))),
    },
    reference=lambda x, y, z, value=1: x + value * y / z,
    errors=[
        (lambda: tg.tensor([1]).addcdiv(tg.tensor([1]), tg.tensor([1])), RuntimeError, "Integer division with addcdiv")
    ],
    refuses={
        "int": "Integer division with addcdiv is no longer supported. Convert the operands to floating tensors, or "
        "compose it of div(rounding_mode='trunc') and add."
    },
    doc="self + value * tensor1 / tensor2, element by element, for floating tensors.",
)

op(
    "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    scalar={
        "float": "fabs(z) < 0.5 ? x + z * (y - x) : y - (y - x) * (1 - z)",
        "complex": "lerp(x, y, z)",
    },
    holomorphic=True,
    refuses={"mixed": "expected dtype of end and weight to be that of self"},
    grad={
        "self": in_float(lambda grad, weight: grad * (1 - weight)),
        "end": lambda grad, weight: grad * weight,
        "weight": in_float(lambda grad, self, end: grad * (end - self)),
    },
    reference=lambda x, y, z: x + z * (y - x),
    errors=[(lambda: tg.tensor([1.0]).lerp(tg.tensor([1.0], dtype=tg.float64), 0.5), RuntimeError, "expected dtype")],
    doc="self + weight * (end - self), computed from the nearer end.",
)

op(
    "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    scalar={
        "float": "fabs(weight) < 0.5 ? x + weight * (y - x) : y - (y - x) * (1 - weight)",
        "complex": "lerp(x, y, weight)",
    },
    holomorphic=True,
    refuses={"mixed": "expected dtype of end to be that of self"},
    grad={
        "self": in_float(lambda grad, weight: grad * (1 - weight)),
        "end": in_float(lambda grad, weight: grad * weight),
    },
    samples=lambda make: [Sample(make(3, 4), make(4), w) for w in (0.25, 0.75, 2)],
    reference=lambda x, y, weight: x + weight * (y - x),
    doc="self + weight * (end - self) for one weight, computed from the nearer end.",
)

op(
    "aten::_from_end(Tensor self, Scalar size) -> Tensor",
    scalar={"int": "x < 0 ? x + size : x"},
    grad={"self": "none"},
    variants="function",
    where="_fused",
    samples=lambda make: [Sample(make(3, 4), 4)],
    reference=lambda x, size: x + size * (x < 0),
    tags="exact",
    doc="Indices below zero, which count from the end of a dimension of that size, as indices from its begin.",
)
