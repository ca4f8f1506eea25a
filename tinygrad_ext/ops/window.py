"""Views that show parts of a tensor: one index, a range, all pieces of a split, a diagonal, windows."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_ALL = "bool int float half complex"


# ---- one index, a range --------------------------------------------------------------------------------------------

op(
    "aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
    batch="dims",
    kernel="select",
    view=True,
    types=_ALL,
    grad={"self": lambda grad, self_shape, dim, index: grad._select_backward(self_shape, dim, index)},
    samples=lambda make: [
        Sample(make(3, 4), 0, 1),
        Sample(make(3, 4), -1, -2),
        Sample(make(2, 0), 0, 1),
        Sample(make(3), 0, 2),
    ],
    reference=lambda x, dim, index: x.take(index, dim),
    errors=[
        (lambda: zeros(2, 3).select(0, 2), IndexError, "index 2 out of range for tensor of size [2, 3] at dimension 0"),
        (lambda: zeros().select(0, 0), IndexError, "cannot be applied to a 0-dim tensor"),
    ],
    doc="One index of a dimension, which goes away. IndexError when the index lies outside the dimension.",
)

op(
    "aten::narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
    batch="dims",
    kernel="narrow",
    view=True,
    types=_ALL,
    grad={"self": lambda grad, self_shape, dim, start: grad._slice_backward(self_shape, dim, start, 1)},
    samples=lambda make: [
        Sample(make(4, 3), 0, 1, 2),
        Sample(make(4, 3), -1, -2, 2),
        Sample(make(4, 3), 0, 4, 0),
        Sample(make(0, 3), 1, 1, 1),
    ],
    reference=lambda x, dim, start, length: x.take(range(start, start + length), dim),
    errors=[
        (lambda: zeros(4).narrow(0, 2, 3), RuntimeError, "start (2) + length (3) exceeds dimension size (4)"),
        (lambda: zeros(4).narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
        (lambda: zeros(4).narrow(0, 5, 0), IndexError, "start out of range"),
        (lambda: zeros().narrow(0, 0, 0), RuntimeError, "cannot be applied to a 0-dim tensor"),
    ],
    doc="`length` elements of a dimension, from `start` on; a negative start counts from the end.",
)


def _narrow_copy(self, dim, start, length):
    if dim >= self.dim() > 0:
        raise RuntimeError(f"narrow_copy(): Expected dim to be less than {self.dim()}, got {dim}")
    return self.narrow(dim, start, length).clone(memory_format=tg.contiguous_format)


op(
    "aten::narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
    compose=_narrow_copy,
    variants="function method out",
    types=_ALL,
    samples=lambda make: [Sample(make(4, 3), 0, 1, 2), Sample(make(4, 3), -1, 1, 2), Sample(make(4, 3), 0, 4, 0)],
    reference=lambda x, dim, start, length: x.take(range(start, start + length), dim),
    errors=[
        (lambda: zeros(4).narrow_copy(0, 2, 3), RuntimeError, "start (2) + length (3) exceeds dimension size (4)"),
        (lambda: zeros().narrow_copy(0, 0, 0), RuntimeError, "cannot be applied to a 0-dim tensor"),
        (lambda: zeros(4).narrow_copy(1, 0, 0), RuntimeError, "Expected dim to be less than 1"),
    ],
    doc="`narrow` in memory of its own.",
)

op(
    "aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    batch="dims",
    kernel="slice",
    view=True,
    variants="method",
    types=_ALL,
    grad={"self": lambda grad, self_shape, dim, start, step: grad._slice_backward(self_shape, dim, start, step)},
    samples=lambda make: [
        Sample(make(5, 3), 0, 1, 4, 2),
        Sample(make(5, 3), 1, -2),
        Sample(make(5, 3)),
        Sample(make(4), 0, 3, 1),
        Sample(make(4), 0, -9, 9, 3),
    ],
    reference=lambda x, dim=0, start=None, end=None, step=1: x[
        (slice(None),) * (dim % x.ndim) + (slice(start, end, step),)
    ],
    errors=[(lambda: zeros(4).slice(0, 0, 4, 0), ValueError, "step must be greater than zero")],
    doc="Every `step`-th element of a dimension from `start` up to `end`, read as Python reads a slice; behind "
    "x[a:b:c].",
)

# ---- all pieces ----------------------------------------------------------------------------------------------------

op(
    "aten::split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
    aliases="unsafe_split",
    batch="dims",
    kernel="split",
    view=True,
    types=_ALL,
    grad={"self": lambda grads, dim: _joined(grads, dim)},
    samples=lambda make: [Sample(make(5, 2), 2), Sample(make(2, 4), 2, -1), Sample(make(3), 5), Sample(make(0, 2), 0)],
    errors=[
        (
            lambda: zeros(5).split(0),
            RuntimeError,
            "split_size can only be 0 if dimension size is 0, but got dimension size of 5",
        ),
        (lambda: zeros(5).split(-1), RuntimeError, "split expects split_size be non-negative"),
        (lambda: zeros().split(1), RuntimeError, "split expects at least a 1-dimensional tensor"),
    ],
    doc="Tuple of pieces of split_size elements along a dimension; the last one may be shorter.",
)

for _schema in (
    "aten::split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor(a)[]",
    "aten::split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
):
    op(
        _schema,
        aliases="unsafe_split_with_sizes" if "with" in _schema else None,
        batch="dims",
        kernel="split_sizes",
        view=True,
        types=_ALL,
        grad={"self": lambda grads, dim: _joined(grads, dim)},
        samples=lambda make: [Sample(make(5, 2), [2, 3]), Sample(make(2, 4), (1, 0, 3), -1), Sample(make(3), [3])],
        errors=[
            (lambda: zeros(5).split([2, 2]), RuntimeError, "to sum exactly to 5 (input tensor's size at dimension 0)"),
            (lambda: zeros(5).split_with_sizes([-1, 6]), RuntimeError, "have only non-negative entries"),
        ],
        doc="Tuple of pieces of the given sizes along a dimension, which they must fill.",
    )

op(
    "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
    aliases="unsafe_chunk",
    batch="dims",
    kernel="chunk",
    view=True,
    types=_ALL,
    grad={"self": lambda grads, dim: _joined(grads, dim)},
    samples=lambda make: [Sample(make(5, 2), 2), Sample(make(2, 4), 3, -1), Sample(make(3), 7), Sample(make(0, 2), 3)],
    errors=[
        (lambda: zeros(5).chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
        (lambda: zeros().chunk(1), RuntimeError, "chunk expects at least a 1-dimensional tensor"),
    ],
    doc="Tuple of at most `chunks` pieces of equal size along a dimension; the last one may be shorter.",
)

op(
    "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    batch="dims",
    kernel="unbind",
    view=True,
    types=_ALL,
    grad={"self": lambda grads, dim: _stacked(grads, dim)},
    samples=lambda make: [Sample(make(3, 2)), Sample(make(3, 2), -1), Sample(make(2)), Sample(make(0, 2))],
    errors=[(lambda: zeros().unbind(), IndexError, "Dimension specified as 0 but tensor has no dimensions")],
    doc="Tuple of all indices of a dimension, which goes away.",
)

# ---- diagonals and windows -----------------------------------------------------------------------------------------

op(
    "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    batch="dims",
    kernel="diagonal",
    view=True,
    types=_ALL,
    grad={"self": lambda grad, self_shape, offset, dim1, dim2: grad._diagonal_backward(self_shape, offset, dim1, dim2)},
    samples=lambda make: [
        Sample(make(3, 4)),
        Sample(make(3, 4), 1),
        Sample(make(3, 4), -2),
        Sample(make(2, 3, 4), 0, -1, 0),
        Sample(make(2, 2), 5),
    ],
    reference="numpy.diagonal",
    errors=[
        (lambda: zeros(2, 3).diagonal(0, 0, 0), RuntimeError, "diagonal dimensions cannot be identical 0, 0"),
        (lambda: zeros(3).diagonal(), IndexError, "expected to be in range of [-1, 0], but got 1"),
    ],
    doc="The diagonal of the matrices in two dimensions, which go; it becomes the last dimension. offset > 0 lies "
    "above it.",
)


def _adjoint(self):
    if self.dim() == 1:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor: unsqueeze it first"
        )
    turned = self.transpose(-2, -1) if self.dim() else self
    return turned.conj() if self.is_complex() else turned


op(
    "aten::adjoint(Tensor(a) self) -> Tensor(a)",
    compose=_adjoint,
    types=_ALL,
    samples=lambda make: [Sample(make(3, 4)), Sample(make(2, 3, 4)), Sample(make(0, 2))],
    reference=lambda x: x.swapaxes(-1, -2).conj(),
    errors=[(lambda: zeros(3).adjoint(), RuntimeError, "Got 1-D tensor")],
    doc="The last two dimensions exchanged, conjugated when complex: a view of real numbers.",
)

op(
    "aten::diagonal.linalg(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    compose=lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2),
    where="linalg",
    variants="function",
    types=_ALL,
    samples=lambda make: [Sample(make(3, 4)), Sample(make(2, 3, 4), offset=1), Sample(make(2, 3, 4), dim1=0, dim2=1)],
    reference=lambda A, offset=0, dim1=-2, dim2=-1: A.diagonal(offset, dim1, dim2),
    errors=[(lambda: __import__("tinygrad_ext").linalg.diagonal(zeros(3)), IndexError, "expected to be in range")],
    doc="The diagonals of matrices in the last two dimensions, as a view.",
)

op(
    "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    batch="dims",
    kernel="unfold",
    view=True,
    variants="method",
    types=_ALL,
    grad={
        "self": lambda grad, self_shape, dimension, size, step: grad._unfold_backward(self_shape, dimension, size, step)
    },
    samples=lambda make: [
        Sample(make(5), 0, 2, 1),
        Sample(make(5), 0, 2, 3),
        Sample(make(2, 6), -1, 3, 2),
        Sample(make(3, 2), 0, 3, 1),
        Sample(make(), 0, 1, 1),
        Sample(make(2), 0, 0, 1),
    ],
    errors=[
        (lambda: zeros(5).unfold(0, 6, 1), RuntimeError, "maximum size for tensor at dimension 0 is 5 but size is 6"),
        (lambda: zeros(5).unfold(0, 2, 0), RuntimeError, "step is 0 but must be > 0"),
        (lambda: zeros(5).unfold(0, -1, 1), RuntimeError, "size is -1 but must be >= 0"),
    ],
    doc="All windows of `size` elements of a dimension, `step` apart; the elements of a window are a new last "
    "dimension.",
)

op(
    "aten::as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
    batch=batching.as_strided,
    kernel="as_strided",
    view=True,
    variants="function method inplace function_",
    types=_ALL,
    grad={
        "self": lambda grad, self_geometry, stride, storage_offset: _put_windows_back(
            grad, self_geometry, stride, storage_offset
        )
    },
    samples=lambda make: [
        Sample(make(6), (2, 3), (3, 1)),
        Sample(make(6), (3, 2), (1, 2), 1),
        Sample(make(5), (3, 3), (1, 1)),
        Sample(make(2, 3), (), (), 4),
        Sample(make(4), (0, 2), (9, 9)),
    ],
    gaps={"layout": "reads the storage, whose layout is what the check varies"},
    errors=[
        (lambda: zeros(6).as_strided((2, 4), (3, 1)), RuntimeError, "out of bounds for storage of size 24"),
        (lambda: zeros(6).as_strided((2,), (2**62,)), RuntimeError, "Storage size calculation overflowed"),
        (lambda: zeros(6).as_strided((2, 3), (3,)), RuntimeError, "mismatch in length of strides and shape"),
        (lambda: zeros(6).as_strided((2,), (-1,), 5), RuntimeError, "Negative strides are not supported"),
        (lambda: zeros(6).as_strided((2,), (1,), -1), RuntimeError, "invalid storage offset -1"),
    ],
    doc="A window on the storage with any sizes and strides (in elements) inside it. Windows may read an element "
    "several times.",
)


def _put_windows_back(grad, geometry, stride, storage_offset):
    sizes, strides, offset = geometry
    return grad._rewindow(stride, offset if storage_offset is None else storage_offset, sizes, strides, offset, False)


def _joined(grads, dim):
    return tg.cat(grads, dim)


def _stacked(grads, dim):
    return tg.stack(grads, dim)
