"""Names that only PyTorch's top level has: kernels of layers under their own names, with all that they give."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _check_p(name, p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}: {name}")


def _native_dropout(input, p, train):
    if train is False or p == 0:
        return input.clone(), tg.ones_like(input, dtype=tg.bool)
    _check_p("native_dropout", p)
    if p == 1:
        return input * input.new_zeros(()), tg.zeros_like(input, dtype=tg.bool)
    if input.dtype in (tg.float32, tg.float64):
        return fused._dropout_step(input, 1 - p)
    noise = fused._dropout_noise(input.detach(), p, False)
    return input * noise, noise != 0


def _np_native_dropout(x, p, train):
    import numpy as np

    return (x * 0, np.zeros(x.shape, bool)) if train is not False and p else (x, np.ones(x.shape, bool))


op(
    "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    compose=_native_dropout,
    types="float",
    tags="draws",
    variants="function",
    samples=lambda make: [Sample(make(3, 4), 0.5, False), Sample(make(2, 3), 0.0, True), Sample(make(2), 1.0, None)],
    reference=_np_native_dropout,
    errors=[(lambda: _native_dropout(zeros(2), 2.0, True), RuntimeError, "has to be between 0 and 1")],
    doc="dropout, and which elements were kept. train=None: as True.",
)


def _feature_dropout(input, p, train):
    if input.dim() < 2 and train and 0 < p <= 1 and input.numel():
        raise RuntimeError(
            f"Feature dropout requires at least 2 dimensions in the input: feature_dropout got {input.dim()}"
        )
    _check_p("feature_dropout", p)
    if not train or p == 0 or not input.numel():
        return input
    return input * (input.new_zeros(()) if p == 1 else fused._dropout_noise(input.detach(), p, True))


op(
    "aten::feature_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)",
    compose=_feature_dropout,
    types="float",
    tags="draws",
    variants="function",
    samples=lambda make: [
        Sample(make(3, 4), 0.5, False),
        Sample(make(2, 3, 2), 0.0, True),
        Sample(make(2, 3), 1.0, True),
    ],
    reference=lambda x, p, train: x * (0 if train and p == 1 else 1),
    errors=[
        (lambda: _feature_dropout(zeros(2), 0.5, True), RuntimeError, "requires at least 2 dimensions"),
        (lambda: _feature_dropout(zeros(2, 2), 2.0, True), RuntimeError, "has to be between 0 and 1"),
    ],
    doc="Dropout of whole channels of (N, C, ...).",
)


op(
    "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    compose=lambda self, output_size: functions["nn.functional.adaptive_max_pool1d_with_indices"](self, output_size),
    types="float",
    variants="function",
    samples=lambda make: [Sample(make(1, 2, 5), 2), Sample(make(2, 4), (3,))],
    errors=[(lambda: tg.adaptive_max_pool1d(zeros(1, 2, 0), 1), RuntimeError, "to have non-zero size")],
    doc="Largest element of each of output_size windows that cover the input evenly, and its place.",
)
