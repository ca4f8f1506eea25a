"""Padding, and differences between neighbours."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.halves import rounded_once
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
        (lambda: _pad(zeros(2, 3), (1, 1, 1, 1), "reflect"), NotImplementedError, "not supported for 2D input"),
        (lambda: _pad(zeros(2, 3), (1, 1), "reflect", 1.0), RuntimeError, "doesn't take in value argument"),
        (lambda: _pad(zeros(3, 0, 9), (1, 1), "reflect"), RuntimeError, "Expected 2D or 3D (batch mode) tensor"),
        (lambda: _pad(zeros(2, 0), (1, 1), "replicate"), RuntimeError, "0 batch size and other non-zero dimensions"),
    ],
    doc="Padding by pairs (before, after) from the last dimension on. mode: constant (value, default 0), reflect "
    "(mirrored without "
    "the edge itself), replicate (the edge), circular (from the other end).",
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
    if mode not in _EXTENSIONS:
        raise NotImplementedError(
            f"Unrecognised padding mode {mode}: it may be constant, reflect, replicate or circular"
        )
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument: it fills from the tensor itself')
    # the last dimensions are padded, behind one or two of channels and batch
    if len(pad) % 2 or not len(pad) // 2 < self.dim() <= len(pad) // 2 + 2 or len(pad) > 6:
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
    made = _extended_by(self, pad, _EXTENSIONS[mode]) if any(pad) else self
    return made if any(width > 0 for width in pad) else made.clone()  # nothing was put to it: no view is given


@rounded_once
def _extended_by(self, pad, extension):
    for i in range(0, len(pad), 2):
        self = _extended(self, -1 - i // 2, pad[i], pad[i + 1], extension)
    return self


def _extended(self, dim, before, after, extension):
    """self with `extension` on both sides of a dimension. Negative widths cut off, at the end (circular: first)."""
    if extension is _wrapped_around:
        self, before, after = _cut(self, dim, before, after), max(before, 0), max(after, 0)
    size = self.shape[dim]
    parts = [self]
    if before > 0:
        parts.insert(0, extension(self, dim, size, before, True))
    if after > 0:
        parts.append(extension(self, dim, size, after, False))
    if len(parts) > 1:
        self = tg.cat(parts, dim)
    return _cut(self, dim, before, after)


def _cut(self, dim, before, after):
    """self without as many elements as the widths are negative."""
    if before >= 0 and after >= 0:
        return self
    start = max(-before, 0)
    return self.narrow(dim, start, self.shape[dim] - start - max(-after, 0))


def _reflected(self, dim, size, width, front):
    if width >= size:
        raise RuntimeError(
            f"Padding size should be less than the corresponding input dimension, but got: padding "
            f"{width} at dimension "
            f"{dim} of input {list(self.shape)}"
        )
    return self.narrow(dim, 1 if front else size - 1 - width, width).flip((dim,))


def _replicated(self, dim, size, width, front):
    shape = list(self.shape)
    shape[dim] = width
    return self.narrow(dim, 0 if front else size - 1, 1).expand(shape)


def _wrapped_around(self, dim, size, width, front):
    if width > size:
        raise RuntimeError(
            f"Padding value causes wrapping around more than once: {width} at dimension {dim} of input "
            f"{list(self.shape)}"
        )
    return self.narrow(dim, size - width if front else 0, width)


_EXTENSIONS = {"reflect": _reflected, "replicate": _replicated, "circular": _wrapped_around}


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
