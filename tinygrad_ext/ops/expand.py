"""Views that repeat a tensor without a copy, and the sum that goes back."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import broadcast_sizes

_ALL = "bool int float half complex"


def _broadcast_tensors(tensors):
    """A tensor that has the shape already comes back itself, so that a leaf among them stays one."""
    shape = broadcast_sizes(*[t.shape for t in tensors])
    if any(hasattr(size, "computed") for size in shape):  # of a captured program, which is none for one size alone
        return tuple([t.expand(shape) for t in tensors])
    return tuple([t if t.shape == shape else t.expand(shape) for t in tensors])


def _broadcast_all(*tensors):
    return tg.broadcast_tensors(*tensors)


def _sum_to_size(self, size):
    shape = self.shape
    if shape == tuple(size):
        return self
    extra = len(shape) - len(size)
    if extra < 0 or any(s != 1 and s != t for s, t in zip(size, shape[extra:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    return sum_to(self, size)


def sum_to(t, size):
    """The sum over the dimensions of t in which `size`, which broadcasts to its shape, is shorter; all in one pass."""
    extra = t.dim() - len(size)
    dims = [*range(extra), *(extra + i for i, s in enumerate(size) if s == 1 and t.shape[extra + i] != 1)]
    if dims:
        t = t.sum(dims, keepdim=True)
    return t.reshape(size) if extra else t


op(
    "aten::expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    batch=batching.expand,
    kernel="expand",
    view=True,
    variants="method",
    types=_ALL,
    grad={"self": lambda grad, self_shape: grad.sum_to_size(self_shape)},
    samples=lambda make: [
        Sample(make(3, 1), (3, 4)),
        Sample(make(3), (2, 3)),
        Sample(make(), (2,)),
        Sample(make(2, 1), (-1, 3)),
        Sample(make(2, 1), (2, 0)),
    ],
    errors=[
        (lambda: zeros(3).expand(2, 4), RuntimeError, "must match the existing size (3) at non-singleton dimension 1"),
        (
            lambda: zeros(2, 3).expand(3),
            RuntimeError,
            "must be greater or equal to the number of dimensions in the tensor (2)",
        ),
        (lambda: zeros(3).expand(-1, 3), RuntimeError, "isn't allowed in a leading, non-existing dimension 0"),
    ],
    doc="Repeat dimensions of size 1 without copying; -1 keeps a size.",
)

op(
    "aten::broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)",
    batch=batching.expand,
    kernel="expand",
    view=True,
    types=_ALL,
    grad={"self": lambda grad, self_shape: grad.sum_to_size(self_shape)},
    samples=lambda make: [Sample(make(3, 1), (3, 4)), Sample(make(), (2,)), Sample(make(3), (2, 3))],
    reference="numpy.broadcast_to",
    doc="self repeated without copying to the given shape.",
)

op(
    "aten::broadcast_tensors(Tensor(a)[] tensors) -> Tensor(a)[]",
    compose=lambda tensors: _broadcast_tensors(tensors),
    variants="function",
    types=_ALL,
    tags="varargs",
    samples=lambda make: [Sample(make(3, 1), make(4)), Sample(make(), make(2)), Sample(make(0, 1), make(3))],
    errors=[
        (
            lambda: _broadcast_all(zeros(3), zeros(4)),
            RuntimeError,
            "The size of tensor a (3) must match the size of tensor b (4)",
        )
    ],
    doc="The tensors repeated without copying to the shape they broadcast to.",
)

op(
    "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    batch=batching.expand_as,
    kernel="expand",
    view=True,
    variants="method",
    types=_ALL,
    grad={"self": lambda grad, self_shape: grad.sum_to_size(self_shape)},
    samples=lambda make: [Sample(make(3, 1), make(3, 4)), Sample(make(), make(2))],
    doc="self repeated without copying to the shape of other.",
)

op(
    "aten::sum_to_size(Tensor(a) self, int[] size) -> Tensor(a)",
    compose=lambda self, size: _sum_to_size(self, size),
    variants="method",
    types="float half complex",
    samples=lambda make: [
        Sample(make(2, 3), (3,)),
        Sample(make(2, 3), (2, 1)),
        Sample(make(2, 3), ()),
        Sample(make(2, 3), (2, 3)),
        Sample(make(4, 2, 3), (2, 1)),
        Sample(make(0, 3), (1, 3)),
    ],
    errors=[(lambda: zeros(2, 3).sum_to_size(2), RuntimeError, "size {[2]} is not expandable to size {[2, 3]}")],
    doc="Sum over the dimensions along which the given shape would be repeated to become self's: "
    "the reverse of expand.",
)
