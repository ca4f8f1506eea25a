"""Quantization as training sees it: numbers rounded to the steps of an integer dtype, and floating all the same."""

import tinygrad_ext as tg
from tinygrad_ext.ops.batching import after, told
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _check(name, self, quant_min, quant_max):
    if not self.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{self.dtype}': convert self with .float()")
    if quant_min > quant_max:
        raise RuntimeError(
            f"{name}(): `quant_min` should be less than or equal to `quant_max`, got {quant_min} and {quant_max}"
        )


def _between(name, zero_point, quant_min, quant_max):
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(
            f"{name}(): `zero_point` must be between `quant_min` and `quant_max`, got {zero_point}, {quant_min} and "
            f"{quant_max}"
        )


def _inside(grad, self, scale, zero_point, axis, quant_min, quant_max):
    """The gradient, as if nothing was rounded, where the step was not cut to an end."""
    whole = not zero_point.dtype.is_floating_point
    one = (-1, *(1,) * (self.dim() - axis % max(self.dim(), 1) - 1))
    scale, zero_point = (x.reshape(() if x.numel() == 1 else one) for x in (scale.float(), zero_point))
    step = (self.double() if self.dtype == tg.float64 else self.float()) * (1.0 / scale)
    step = step.round() + zero_point if whole else (step + zero_point).round()
    return fused.where((step >= quant_min) & (step <= quant_max), grad, 0)


@told("_fake_quantize")
def _batched(b, self, scale, zero_point, axis, quant_min, quant_max):
    """Scales of each sample become scales of as many channels."""
    x = b.whole(self)
    at = after(axis, x.dim() - 1)
    if not (b.owns(scale) or b.owns(zero_point)):
        return fused._fake_quantize(x, scale, zero_point, at, quant_min, quant_max)
    scale, zero_point = b.whole(scale), b.whole(zero_point)
    scale, zero_point = (y if y.dim() == 2 else y.unsqueeze(1) for y in (scale, zero_point))
    many = max(scale.shape[1], zero_point.shape[1])
    inner = x.movedim(at, 1) if many > 1 else x
    flat = inner.reshape(b.size * many, -1) if x.numel() else inner.reshape(b.size * many, 0)
    scale, zero_point = (y.expand(b.size, many).reshape(-1) for y in (scale, zero_point))
    found = fused._fake_quantize(flat, scale, zero_point, 0, quant_min, quant_max).reshape(inner.shape)
    return found.movedim(1, at) if many > 1 else found


def _np_fake_quantize(x, scale, zero_point, quant_min, quant_max):
    scale = scale if isinstance(scale, float) else scale.astype(float)
    whole = isinstance(zero_point, int) or zero_point.dtype.kind == "i"
    step = (x / scale).round() + zero_point if whole else (x / scale + zero_point).round()
    return ((step.clip(quant_min, quant_max) - zero_point) * scale).astype(x.dtype)


def _np_channels(x, scale, zero_point, axis, quant_min, quant_max):
    one = (-1, *(1,) * (x.ndim - axis - 1))
    return _np_fake_quantize(x, scale.reshape(one), zero_point.reshape(one), quant_min, quant_max)


_NUMBERS = 1.0625, -0.1875, 0.3125, 2.0625, -3.1875, 0.0625  # no rounding takes one over the edge of a step


def _apart(make, *shape):
    return make.like(_NUMBERS).detach().reshape(shape)


op(
    "aten::_fake_quantize(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> "
    "Tensor",
    kernel="fake_quantize",
    batch=_batched,
    grad={"self": _inside, "scale": "none", "zero_point": "none"},
    jvp="symmetric",
    types="float half",
    variants="function",
    where="_fused",
    samples=lambda make: [
        Sample(_apart(make, 2, 3), make.of([0.5], tg.float32), make.of([1], tg.int32), 0, -3, 3),
        Sample(_apart(make, 3, 2), make.of([0.5, 0.25], tg.float32), make.of([1, 0], tg.int32), 1, 0, 7),
    ],
    reference=_np_channels,
    errors=[
        (
            lambda: fused._fake_quantize(zeros(3, 2), zeros(3), zeros(2), 1, 0, 1),
            RuntimeError,
            "or one for each index along axis 1",
        ),
        (
            lambda: fused._fake_quantize(zeros(2).long(), zeros(1), zeros(1), 0, 0, 1),
            NotImplementedError,
            "convert self with .float()",
        ),
    ],
    doc="Each element as the nearest of the numbers (k - zero_point) * scale, k from quant_min to quant_max. The "
    "derivative passes the steps by: it is 1, and 0 where k would lie outside.",
)


_TENSOR = "fake_quantize_per_tensor_affine"
_CHANNEL = "fake_quantize_per_channel_affine"


def _per_tensor(self, scale, zero_point, quant_min, quant_max):
    _check(_TENSOR, self, quant_min, quant_max)
    _between(_TENSOR, zero_point, quant_min, quant_max)
    scale = tg.scalar_tensor(scale, dtype=tg.float32, device=self.device)
    zero_point = tg.scalar_tensor(zero_point, dtype=tg.int32, device=self.device)
    return fused._fake_quantize(self, scale, zero_point, 0, quant_min, quant_max)


def _by_tensors(self, scale, zero_point, quant_min, quant_max):
    _check(_TENSOR, self, quant_min, quant_max)
    for name, given in (("scale", scale), ("zero_point", zero_point)):
        if given.numel() != 1:
            raise RuntimeError(
                f"{_TENSOR}(): expected {name} of one element, got {list(given.shape)}; {_CHANNEL}() takes one for "
                "each channel"
            )
    zero_point = zero_point.to(tg.int32)  # 0.5 is 0, as in PyTorch
    return fused._fake_quantize(self, scale, zero_point, 0, quant_min, quant_max)


def _per_channel(self, scale, zero_point, axis, quant_min, quant_max):
    _check(_CHANNEL, self, quant_min, quant_max)
    if not scale.is_floating_point() or scale.dtype in (tg.float64, tg.float16):
        raise RuntimeError(f"{_CHANNEL}(): Scale must be Float or BFloat16, found {scale.dtype}")
    if zero_point.dtype not in (tg.int32, tg.float32, tg.float16):
        raise RuntimeError(f"{_CHANNEL}(): Zero-point must be Int32, Float or Half, found {zero_point.dtype}")
    for name, given in (("scale", scale), ("zero point", zero_point)):
        if given.dim() != 1:
            raise RuntimeError(f"{_CHANNEL}(): {name} should be a 1-D tensor, got {list(given.shape)}")
    if scale.shape != zero_point.shape:
        raise RuntimeError(
            f"{_CHANNEL}(): scale and zero-point need to have the same dimensions, got {list(scale.shape)} and "
            f"{list(zero_point.shape)}"
        )
    rank = self.dim()
    if axis >= rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {axis})")
    if axis < 0:
        raise RuntimeError(f"{_CHANNEL}(): `axis` must be between 0 and number of dimensions of input, got {axis}")
    if scale.shape[0] != self.shape[axis]:
        raise RuntimeError(
            f"{_CHANNEL}(): dimensions of scale and zero-point are not consistent with input tensor: {scale.shape[0]} "
            f"of them for {self.shape[axis]} channels"
        )
    # of numbers that are carried or have no memory there is nothing to be read
    if zero_point.dtype == tg.int32 and zero_point.numel() and not (zero_point.is_meta or hasattr(zero_point, "level")):
        for extreme in tg.aminmax(zero_point):
            _between(_CHANNEL, int(extreme), quant_min, quant_max)
    return fused._fake_quantize(self, scale, zero_point, axis, quant_min, quant_max)


def _refused(call, text, *, error=RuntimeError):
    return lambda: call(zeros(3, 2), zeros(2)), error, text


# before the one of numbers, which would read the tensors
op(
    "aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, "
    "int quant_max) -> Tensor",
    compose=_by_tensors,
    types="float half",
    variants="function",
    samples=lambda make: [
        Sample(_apart(make, 2, 3), make.of(0.5, tg.float32), make.of(1, tg.int32), -3, 3),
        Sample(_apart(make, 6), make.of([0.25], tg.float32), make.of([0], tg.int32), 0, 7),
    ],
    reference=_np_fake_quantize,
    errors=[
        _refused(
            lambda x, s: tg.fake_quantize_per_tensor_affine(x, s + 1, s[0].int(), 0, 5),
            "expected scale of one element",
        ),
    ],
    doc="fake_quantize_per_tensor_affine with a scale and a zero point that tensors hold, which are not looked at.",
)

op(
    "aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> "
    "Tensor",
    compose=_per_tensor,
    types="float half",
    variants="function",
    samples=lambda make: [Sample(_apart(make, 2, 3), 0.5, 1, -3, 3), Sample(_apart(make, 6), 0.25, 0, 0, 7)],
    reference=_np_fake_quantize,
    errors=[
        _refused(lambda x, s: tg.fake_quantize_per_tensor_affine(x, 0.1, 9, 0, 5), "`zero_point` must be between"),
        _refused(lambda x, s: tg.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 0), "less than or equal to `quant_max`"),
        _refused(
            lambda x, s: tg.fake_quantize_per_tensor_affine(x.long(), 0.1, 0, 0, 5),
            "not implemented for 'torch.int64'",
            error=NotImplementedError,
        ),
    ],
    doc="Each element as the nearest of the numbers (k - zero_point) * scale that an integer k from quant_min to "
    "quant_max stands for. The gradient passes through where k was not cut to an end.",
)

op(
    "aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int "
    "quant_max) -> Tensor",
    compose=_per_channel,
    types="float half",
    variants="function",
    samples=lambda make: [
        Sample(_apart(make, 3, 2), make.of([0.5, 0.25], tg.float32), make.of([1, 0], tg.int32), 1, 0, 7),
        Sample(_apart(make, 2, 3), make.of([0.5, 0.25], tg.float32), make.of([0.5, 0.0], tg.float32), 0, -4, 3),
    ],
    reference=_np_channels,
    errors=[
        _refused(
            lambda x, s: tg.fake_quantize_per_channel_affine(x, s.double(), s.int(), 1, 0, 5), "Scale must be Float"
        ),
        _refused(lambda x, s: tg.fake_quantize_per_channel_affine(x, s, s.long(), 1, 0, 5), "Zero-point must be Int32"),
        _refused(lambda x, s: tg.fake_quantize_per_channel_affine(x, s[0], s.int(), 1, 0, 5), "scale should be a 1-D"),
        _refused(lambda x, s: tg.fake_quantize_per_channel_affine(x, s, s[:1].int(), 1, 0, 5), "the same dimensions"),
        _refused(lambda x, s: tg.fake_quantize_per_channel_affine(x, s, s.int(), 0, 0, 5), "are not consistent with"),
        _refused(lambda x, s: tg.fake_quantize_per_channel_affine(x, s, s.int(), -1, 0, 5), "`axis` must be between"),
        _refused(lambda x, s: tg.fake_quantize_per_channel_affine(x, s, s.int(), 1, 1, 5), "`zero_point` must be betw"),
        _refused(
            lambda x, s: tg.fake_quantize_per_channel_affine(x, s, s.int(), 2, 0, 5),
            "Dimension out of range",
            error=IndexError,
        ),
    ],
    doc="fake_quantize_per_tensor_affine with a scale and a zero point for each index along axis. Zero points of int32 "
    "are checked.",
)
