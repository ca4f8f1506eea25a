"""Views: other shapes of the same memory."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_ALL = "bool int float half complex"


def _reshaped(grad, self_shape):
    """The gradient of whatever only changes the shape."""
    return grad.reshape(self_shape)


def _moved(x, source, destination):
    import numpy

    return numpy.moveaxis(x, source, destination) if x.ndim else x


def _matrices(make):
    yield Sample(make(2, 3))
    yield Sample(make(4))
    yield Sample(make())
    yield Sample(make(0, 2))


# ---- another shape -------------------------------------------------------------------------------------------------

op(
    "aten::view(Tensor(a) self, int[] size) -> Tensor(a)",
    batch=batching.view,
    kernel="view",
    view=True,
    variants="method",
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [
        Sample(make(2, 6), (3, 4)),
        Sample(make(2, 6), (-1,)),
        Sample(make(), (1, 1)),
        Sample(make(0, 3), (3, 0)),
    ],
    reference="numpy.reshape",
    gaps={"layout": "refuses layouts that only a copy could give the new shape; reshape takes them"},
    errors=[
        (lambda: zeros(2, 3).t().view(6), RuntimeError, "Use .reshape(...) instead"),
        (lambda: zeros(6).view(4), RuntimeError, "shape '[4]' is invalid for input of size 6"),
        (lambda: zeros(6).view(-2, 3), RuntimeError, "invalid shape dimension -2"),
        (lambda: zeros(0).view(2**32, 2**32), RuntimeError, "overflow"),
    ],
    doc="The same elements in another shape; one size may be -1. RuntimeError when the strides do not allow it.",
)

op(
    "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    batch=batching.view_dtype,
    kernel="view_dtype",
    view=True,
    variants="method",
    types=_ALL,
    samples=lambda make: _as_bytes(make),
    gaps={"layout": "refuses layouts whose last dimension has gaps in memory"},
    errors=[
        (lambda: zeros(3).view(zeros(0).double().dtype), RuntimeError, "self.size(-1) must be divisible by 2"),
        (lambda: zeros().view(zeros(0).double().dtype), RuntimeError, "self.dim() cannot be 0"),
        (lambda: zeros(4, 2).t().view(zeros(0).double().dtype), RuntimeError, "self.stride(-1) must be 1"),
    ],
    doc="The same bytes read as another dtype. Where the element sizes differ, the last dimension grows or shrinks.",
)

op(
    "aten::reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
    batch=batching.reshape,
    kernel="reshape",
    view=True,
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [
        Sample(make(2, 6), (3, 4)),
        Sample(make(2, 3, 2), (-1, 2)),
        Sample(make(0, 3), (3, 0)),
        Sample(make(), (1,)),
    ],
    reference="numpy.reshape",
    errors=[
        (lambda: zeros(6).reshape(4, -1), RuntimeError, "shape '[4, -1]' is invalid for input of size 6"),
        (lambda: zeros(6).reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
        (lambda: zeros(0).reshape(0, -1), RuntimeError, "is ambiguous"),
    ],
    doc="The same elements in another shape: a view where possible, else a copy.",
)

op(
    "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    batch=batching.flatten,
    kernel="flatten",
    view=True,
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [
        Sample(make(2, 3, 4)),
        Sample(make(2, 3, 4), 1),
        Sample(make(2, 3, 4), 0, -2),
        Sample(make()),
        Sample(make(0, 3)),
        Sample(make(3), 0, 0),
    ],
    errors=[
        (lambda: zeros(2, 3).flatten(1, 0), RuntimeError, "start_dim cannot come after end_dim"),
        (lambda: zeros(2, 3).flatten(0, 5), IndexError, "expected to be in range of [-2, 1], but got 5"),
    ],
    doc="Dimensions start_dim to end_dim as one: a view where possible, else a copy.",
)

op(
    "aten::ravel(Tensor(a) self) -> Tensor(a)",
    batch=batching.ravel,
    kernel="ravel",
    view=True,
    types=_ALL,
    grad={"self": _reshaped},
    samples=_matrices,
    reference="numpy.ravel",
    doc="All elements in one dimension: a view where possible, else a copy.",
)

op(
    "aten::unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)",
    batch=batching.unflatten,
    kernel="unflatten",
    view=True,
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [
        Sample(make(6, 2), 0, (2, 3)),
        Sample(make(6, 2), -2, (-1, 3)),
        Sample(make(4), 0, (2, 1, 2)),
        Sample(make(0, 2), 0, (0, 3)),
    ],
    errors=[
        (
            lambda: zeros(6, 2).unflatten(0, (4, -1)),
            RuntimeError,
            "Provided sizes [4, -1] don't multiply up to the size of dim 0 (6)",
        ),
        (lambda: zeros(6, 2).unflatten(0, ()), RuntimeError, "unflatten: sizes must be non-empty"),
    ],
    doc="One dimension taken apart into several; one of their sizes may be -1.",
)

op(
    "aten::contiguous(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)",
    batch="leading",
    kernel="contiguous",
    tags="any_device moves",
    variants="method",
    types=_ALL,
    grad={"self": "grad"},
    jvp="linear",
    samples=_matrices,
    doc="The tensor itself when its elements lie in row-major order, else a copy in which they do.",
)

# ---- dimensions of size 1 ------------------------------------------------------------------------------------------

op(
    "aten::squeeze(Tensor(a) self) -> Tensor(a)",
    batch=batching.squeeze,
    kernel="squeeze",
    view=True,
    variants="function method inplace",
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [Sample(make(1, 3, 1)), Sample(make(2, 3)), Sample(make()), Sample(make(1, 1))],
    reference="numpy.squeeze",
    doc="The tensor without its dimensions of size 1.",
)

op(
    "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    batch="dims",
    kernel="squeeze_dims",
    view=True,
    variants="function method inplace",
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [
        Sample(make(1, 3, 1), 0),
        Sample(make(1, 3, 1), -1),
        Sample(make(1, 3), 1),
        Sample(make(), 0),
    ],
    errors=[(lambda: zeros(2, 1).squeeze(2), IndexError, "expected to be in range of [-2, 1], but got 2")],
    doc="The tensor without one dimension, if its size is 1.",
)

op(
    "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    batch="dims",
    kernel="squeeze_dims",
    view=True,
    variants="function method inplace",
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [Sample(make(1, 3, 1), (0, 2)), Sample(make(1, 3, 1), (-1, 1)), Sample(make(1, 2), ())],
    errors=[(lambda: zeros(2, 1).squeeze((0, 0)), RuntimeError, "dim 0 appears multiple times")],
    doc="The tensor without those of the given dimensions whose size is 1.",
)

op(
    "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    batch=batching.unsqueeze,
    kernel="unsqueeze",
    view=True,
    variants="function method inplace",
    types=_ALL,
    grad={"self": lambda grad, dim: grad.squeeze(dim)},
    samples=lambda make: [
        Sample(make(2, 3), 0),
        Sample(make(2, 3), -1),
        Sample(make(2, 3), 1),
        Sample(make(), 0),
        Sample(make(0), -2),
    ],
    reference="numpy.expand_dims",
    errors=[(lambda: zeros(2).unsqueeze(2), IndexError, "expected to be in range of [-2, 1], but got 2")],
    doc="A new dimension of size 1 at the given place.",
)

op(
    "aten::atleast_1d(Tensor(a) self) -> Tensor(a)",
    compose=lambda self: self.reshape(1) if self.dim() == 0 else self,
    variants="function",
    types=_ALL,
    samples=_matrices,
    reference="numpy.atleast_1d",
    doc="The tensor itself, or a 0-dim one with one dimension of size 1.",
)

op(
    "aten::atleast_1d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]",
    compose=lambda tensors: tuple([t.reshape(1) if t.dim() == 0 else t for t in tensors]),
    variants="function",
    types=_ALL,
    tags="varargs",
    samples=lambda make: [Sample([make(), make(2)]), Sample([make(2, 3)])],
    doc="Each tensor itself, or with one dimension if it had none.",
)

# ---- order of dimensions -------------------------------------------------------------------------------------------

op(
    "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    batch=batching.permute,
    kernel="permute",
    view=True,
    types=_ALL,
    grad={"self": lambda grad, dims: grad.permute(_inverse(dims))},
    samples=lambda make: [Sample(make(2, 3, 4), (2, 0, 1)), Sample(make(2, 3), (-1, 0)), Sample(make(), ())],
    reference="numpy.transpose",
    errors=[
        (lambda: zeros(2, 3).permute(0), RuntimeError, "input.dim() = 2 is not equal to len(dims) = 1"),
        (lambda: zeros(2, 3).permute(0, 0), RuntimeError, "duplicate dims are not allowed"),
    ],
    doc="Dimensions in another order.",
)

op(
    "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    batch="dims",
    kernel="transpose",
    view=True,
    variants="function method inplace",
    aliases="swapaxes swapdims",
    types=_ALL,
    grad={"self": lambda grad, dim0, dim1: grad.transpose(dim0, dim1)},
    samples=lambda make: [Sample(make(2, 3, 4), 0, 2), Sample(make(2, 3), -1, 0), Sample(make(), 0, -1)],
    errors=[(lambda: zeros(2, 3).transpose(0, 2), IndexError, "expected to be in range of [-2, 1], but got 2")],
    doc="Two dimensions exchanged.",
)

op(
    "aten::t(Tensor(a) self) -> Tensor(a)",
    batch=batching.t,
    kernel="t",
    view=True,
    variants="function method inplace",
    types=_ALL,
    grad={"self": lambda grad: grad.t()},
    samples=_matrices,
    reference="numpy.transpose",
    errors=[(lambda: zeros(1, 2, 3).t(), RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D")],
    doc="Transpose of a matrix; vectors and scalars stay as they are.",
)

for _schema in (
    "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
):
    op(
        _schema,
        batch="dims",
        kernel="movedim",
        view=True,
        aliases="moveaxis",
        types=_ALL,
        grad={"self": lambda grad, source, destination: grad.movedim(destination, source)},
        samples=(
            lambda make: [
                Sample(make(2, 3, 4), (0, 1), (2, 0)),
                Sample(make(2, 3), (-1,), (0,)),
                Sample(make(2), (), ()),
            ]
        )
        if "intlist" in _schema
        else lambda make: [Sample(make(2, 3, 4), 0, -1), Sample(make(), 0, 0), Sample(make(0, 2), 1, 0)],
        reference="numpy.moveaxis" if "intlist" in _schema else _moved,
        errors=[
            (lambda: zeros(2, 3).movedim((0, 0), (1, 0)), RuntimeError, "repeated dim in `source` ([0, 0])"),
            (lambda: zeros(2, 3).movedim((0, 1), (1,)), RuntimeError, "should contain the same number of dims"),
        ],
        doc="Dimensions moved to new places; the others keep their order.",
    )

# ---- like another tensor -------------------------------------------------------------------------------------------

op(
    "aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    batch=batching.view_as,
    kernel="view",
    view=True,
    variants="method",
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [Sample(make(2, 6), make(3, 4)), Sample(make(1), make())],
    gaps={"layout": "refuses layouts that only a copy could give the new shape; reshape_as takes them"},
    doc="self as a view in the shape of other.",
)

op(
    "aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    batch=batching.reshape_as,
    kernel="reshape",
    view=True,
    variants="method",
    types=_ALL,
    grad={"self": _reshaped},
    samples=lambda make: [Sample(make(2, 6), make(3, 4)), Sample(make(1), make())],
    doc="self in the shape of other: a view where possible, else a copy.",
)


def _as_bytes(make):
    yield Sample(make(2, 4), tg.uint8)
    yield Sample(make(1, 1), tg.uint8)


def _inverse(dims):
    n = len(dims)
    out = [0] * n
    for i, d in enumerate(dims):
        out[d % n] = i
    return out
