"""Dropout of elements as one step, and its derivative, which multiplies by what was kept."""

from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _batched(level, grad, kept, keep):
    return fused._dropout_step_backward(level.whole(grad), level.whole(kept), keep)


op(
    "aten::_dropout_step_backward(Tensor grad, Tensor kept, float keep) -> Tensor",
    kernel="dropout_back",
    batch=_batched,
    jvp="linear",
    grad={"grad": "_dropout_step_backward(grad, kept, keep)"},
    types="float",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(3, 4), make.bools(3, 4), 0.75), Sample(make(2, 3), make.bools(2, 3), 0.5)]),
    reference=lambda grad, kept, keep: grad * kept / keep,
    errors=[
        (lambda: fused._dropout_step_backward(zeros(2), zeros(2), 0.5), RuntimeError, "kept must be of dtype Bool"),
        (lambda: fused._dropout_step_backward(zeros(2), zeros(3) > 0, 0.5), RuntimeError, "shape [2], as grad"),
        (lambda: fused._dropout_step_backward(zeros(2).long(), zeros(2) > 0, 0.5), NotImplementedError, "'Long'"),
    ],
    doc="The gradient divided by keep where it was kept, else zero (of infinity: not a number, as by a product).",
)


def _tangent(self_tangent, kept, keep):
    return fused._dropout_step_backward(self_tangent, kept, keep), None


op(
    "aten::_dropout_step(Tensor self, float keep, *, Generator? generator=None) -> (Tensor result, Tensor kept)",
    kernel="dropout_step",
    grad={"self": "_dropout_step_backward(grad, kept, keep)"},
    jvp=_tangent,
    types="float",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(3, 4), 0.5), Sample(make(2, 3, 4), 0.9)]),
    tags="random",
    errors=[
        (lambda: fused._dropout_step(zeros(2).long(), 0.5), NotImplementedError, "not implemented for 'Long'"),
        (lambda: fused._dropout_step(zeros(2), 0.0), RuntimeError, "in (0, 1], but got keep=0"),
    ],
    doc="self with each element divided by keep, with the probability keep, or set to zero; and which were kept.",
)
