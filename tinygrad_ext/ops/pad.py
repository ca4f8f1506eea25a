"""Padding, and differences between neighbours."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_ALL = "bool int float half complex"

op(
    "aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    batch="leading",
    kernel="constant_pad",
    types=_ALL,
    grad={"self": lambda grad, pad: grad.constant_pad_nd([-p for p in pad])},
    jvp=lambda self_tangent, pad: tg.constant_pad_nd(self_tangent, pad, 0),
    samples=lambda make: [
        Sample(make(2, 3), (1, 2)),
        Sample(make(2, 3), (1, 0, 0, 1), 1),
        Sample(make(2, 3), (-1, 1)),
        Sample(make(3), ()),
        Sample(make(0, 2), (0, 0, 1, 1)),
    ],
    errors=[
        (lambda: _pad(zeros(2, 3), (1,)), RuntimeError, "Padding length must be divisible by 2"),
        (lambda: _pad(zeros(3), (1, 1, 1, 1)), RuntimeError, "but got padding length 4 and input of dimension 1"),
        (lambda: _pad(zeros(3), (-2, -2)), RuntimeError, "resulted in a negative output size"),
        (lambda: _pad(zeros(3), (2**62, 0)), RuntimeError, "overflow"),
    ],
    variants="function method",
    doc="`value` around the tensor: pad holds pairs (before, after), the first for the last dimension. Negative "
    "numbers cut off.",
)

op(
    'aten::pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor',
    compose=lambda self, pad, mode, value: _pad_by_mode(self, pad, mode, value),
    variants="function",
    where="nn.functional",
    types=_ALL,
    samples=lambda make: [
        Sample(make(2, 3), (1, 2)),
        Sample(make(2, 3), (1, 0, 0, 1), value=1.0),
        Sample(make(2, 3), (-1, 1), "constant"),
        Sample(make(1, 2, 3), (2, 1), "circular"),
        Sample(make(2, 3), (2, 3), "replicate"),
        Sample(make(1, 3, 4), (2, 1, 1, 2), "reflect"),
        Sample(make(1, 1, 2, 3), (1, 2, 1, 0), "circular"),
    ],
    errors=[
        (lambda: _pad(zeros(2, 3), (1, 1), "mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
        (
            lambda: _pad(zeros(2, 3), (3, 1), "reflect"),
            RuntimeError,
            "Padding size should be less than the corresponding input",
        ),
        (lambda: _pad(zeros(1, 2, 3), (4, 1), "circular"), RuntimeError, "wrapping around more than once"),
        (lambda: _pad(zeros(2, 3), (-2, -1), "reflect"), RuntimeError, "is too small. Calculated output size: 0"),
        (lambda: _pad(zeros(2, 3), (1, 1, 1, 1), "reflect"), NotImplementedError, "not supported for 2D input"),
        (lambda: _pad(zeros(2, 3), (1,), "reflect"), RuntimeError, "Padding length must be divisible by 2"),
        (lambda: _pad(zeros(3), (1, 1, 1, 1), "circular"), RuntimeError, "two times the input dimension"),
        (lambda: _pad(zeros(2, 3), (1, 1), "reflect", 1.0), RuntimeError, "doesn't take in value argument"),
        (lambda: _pad(zeros(3, 0, 9), (1, 1), "reflect"), RuntimeError, "Expected 2D or 3D (batch mode) tensor"),
        (lambda: _pad(zeros(2, 0), (1, 1), "replicate"), RuntimeError, "0 batch size and other non-zero dimensions"),
    ],
    doc="Padding by pairs (before, after) from the last dimension on. mode: constant (value, default 0), reflect "
    "(mirrored without "
    "the edge itself), replicate (the edge), circular (from the other end).",
)


def _np_extend(x, pad, mode):
    import numpy  # lazy: for tests alone

    kinds = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    for i in range(len(pad) // 2):
        dim, (before, after) = x.ndim - 1 - i, pad[2 * i : 2 * i + 2]
        around = [(0, 0)] * x.ndim
        around[dim] = (max(before, 0), max(after, 0))
        kept = [slice(None)] * x.ndim
        kept[dim] = slice(max(-before, 0), min(after, 0) or None)
        steps = [lambda y, kept=kept: y[tuple(kept)], lambda y, around=around: numpy.pad(y, around, kinds[mode])]
        for step in steps if mode == "circular" else reversed(steps):
            x = step(x)
    return x


def _np_extend_backward(grad, size, pad, mode):
    import numpy  # lazy: for tests alone

    shape = (*grad.shape[: grad.ndim - len(size)], *size)
    made = numpy.zeros(shape, grad.dtype)
    numpy.add.at(made.reshape(-1), _np_extend(numpy.arange(made.size).reshape(shape), pad, mode), grad)
    return made


op(
    "aten::_extend(Tensor self, int[] pad, str mode) -> Tensor",
    batch="leading",
    kernel="extend",
    types=_ALL,
    grad={
        "self": lambda grad, self_shape, pad, mode: fused._extend_backward(
            grad, self_shape[len(self_shape) - len(pad) // 2 :], pad, mode
        )
    },
    jvp="linear",
    variants="function",
    where="_fused",
    reference=_np_extend,
    samples=lambda make: [
        Sample(make(2, 5), (2, 3), "reflect"),
        Sample(make(2, 3, 4), (2, 1, 1, 2), "replicate"),
        Sample(make(2, 3, 4), (2, 4, 1, 3), "circular"),
        Sample(make(2, 3, 4, 4), (2, 1, 1, 2, -1, 1), "reflect"),
        Sample(make(5), (3, -2), "circular"),
        Sample(make(5), (-7, 4), "reflect"),
        Sample(make(1, 2), (9, 3), "replicate"),
    ],
    errors=[
        (lambda: fused._extend(zeros(2, 3), (1,), "reflect"), RuntimeError, "takes a pair for each"),
        (lambda: fused._extend(zeros(2, 3), (1, 1), "mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
        (lambda: fused._extend(zeros(2, 3), (2**62, 1), "reflect"), RuntimeError, "overflowed"),
        (lambda: fused._extend(zeros(0), (1, 1), "replicate"), RuntimeError, "has no places"),
    ],
    doc="self, around which its last dimensions are mirrored, repeated or wrapped around.",
)

op(
    "aten::_extend_backward(Tensor grad_output, int[] size, int[] pad, str mode) -> Tensor",
    batch="leading",
    kernel="extend_backward",
    types="float half complex",
    grad={"grad_output": lambda grad, pad, mode: fused._extend(grad, pad, mode)},
    jvp="linear",
    variants="function",
    where="_fused",
    reference=_np_extend_backward,
    samples=lambda make: [
        Sample(make(2, 10), (5,), (2, 3), "reflect"),
        Sample(make(2, 6, 7), (3, 4), (2, 1, 1, 2), "replicate"),
        Sample(make(2, 7, 10), (3, 4), (2, 4, 1, 3), "circular"),
        Sample(make(2, 3, 7, 7), (3, 4, 4), (2, 1, 1, 2, -1, 1), "reflect"),
        Sample(make(6), (5,), (3, -2), "circular"),
    ],
    errors=[
        (
            lambda: fused._extend_backward(zeros(2, 5), (3,), (1, 2), "reflect"),
            RuntimeError,
            "gradOutput is unexpectedly sized in dimension 1. Expected: 6, Got: 5",
        ),
        (
            lambda: fused._extend_backward(zeros(2, 5), (3, 3), (1, 1), "reflect"),
            RuntimeError,
            "size takes 1 numbers, one for each pair of pad, got 2",
        ),
        (
            lambda: fused._extend_backward(zeros(2, 5), (-1,), (5, 1), "circular"),
            RuntimeError,
            "size has the negative number -1",
        ),
        (
            lambda: fused._extend_backward(zeros(5, dtype=tg.int64), (3,), (1, 1), "reflect"),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
    ],
    doc="The transpose of _extend, of whose padded dimensions `size` are the sizes: each place gets the sum of what "
    "it went to.",
)

op(
    "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    compose=lambda self, n, dim, prepend, append: _diff(self, n, dim, prepend, append),
    variants="function method out",
    types="bool int float",
    samples=lambda make: [
        Sample(make(5)),
        Sample(make(3, 4), 2),
        Sample(make(3, 4), dim=0),
        Sample(make(3), 1, -1, make(2), make(1)),
        Sample(make(2, 3), 5),
        Sample(make(2, 3), 0),
    ],
    errors=[
        (lambda: zeros(3).diff(-1), RuntimeError, "order must be non-negative but got -1"),
        (lambda: zeros().diff(), RuntimeError, "diff expects input to be at least one-dimensional"),
        (lambda: zeros(2).diff(prepend=zeros()), RuntimeError, "prepend or append to be the same dimension as input"),
        (
            lambda: zeros(2, 2).diff(append=zeros(3, 2)),
            RuntimeError,
            "match that of input except along the differencing dimension",
        ),
    ],
    tags="casts",
    doc="Each element minus the one before it in a dimension, n times over; prepend and append are put around self "
    "first.",
)


def _pad(*args):
    return functions["nn.functional.pad"](*args)


def _pad_by_mode(self, pad, mode, value):
    if mode == "constant":
        return self.constant_pad_nd(pad, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"Unrecognised padding mode {mode}: it may be constant, reflect, replicate or circular"
        )
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument: it fills from the tensor itself')
    if len(pad) % 2:
        raise RuntimeError(f"pad(): Padding length must be divisible by 2, got {len(pad)}")
    if len(pad) > 2 * self.dim():
        raise RuntimeError(
            "pad(): Padding length should be less than or equal to two times the input dimension but got padding "
            f"length {len(pad)} and input of dimension {self.dim()}"
        )
    # the last dimensions are padded, behind one or two of channels and batch
    if not len(pad) // 2 < self.dim() <= len(pad) // 2 + 2 or len(pad) > 6:
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {self.dim()}D input tensor. Only 2D, "
            f"3D, 4D, 5D padding "
            "with non-constant padding are supported: pad the last 1, 2 or 3 dimensions behind "
            "channels"
        )
    n = len(pad) // 2
    if mode != "circular" and 0 in self.shape[self.dim() == n + 2 :]:
        raise RuntimeError(
            f"pad(): Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input with mode '{mode}', but got: {list(self.shape)}"
        )
    return fused._extend(self, pad, mode) if any(pad) else self.clone()


def _diff(self, n, dim, prepend, append):
    if self.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional: a 0-dim tensor has no neighbours")
    self.size(dim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:  # PyTorch leaves prepend and append away then
        return self.clone()
    if prepend is not None or append is not None:
        self = _surrounded(self, dim, prepend, append)
    for _ in range(min(n, self.shape[dim])):
        rest = max(self.shape[dim] - 1, 0)
        later, earlier = self.narrow(dim, min(1, self.shape[dim]), rest), self.narrow(dim, 0, rest)
        self = later != earlier if str(self.dtype).endswith("bool") else later - earlier
    return self


def _surrounded(self, dim, prepend, append):
    axis = dim % self.dim()
    for t in (prepend, append):
        if t is None:
            continue
        if t.dim() != self.dim():
            raise RuntimeError(
                f"diff expects prepend or append to be the same dimension as input: input has "
                f"{self.dim()} dimensions, "
                f"this one {t.dim()}"
            )
        for i, (a, b) in enumerate(zip(self.shape, t.shape)):
            if i != axis and a != b:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input "
                    "except along the "
                    f"differencing dimension; input.size({i}) = {a}, but got tensor.size({i}) = {b}"
                )
    return tg.cat([t for t in (prepend, self, append) if t is not None], dim)
