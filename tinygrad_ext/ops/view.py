"""Views: other shapes of the same memory."""

from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _reshape(self, shape):
    from tinygrad_ext.native.view import can_view

    return self.view(shape) if can_view(self, shape) else self.contiguous().view(shape)


def _contiguous(self, memory_format):
    from tinygrad_ext.core.dtype import contiguous_format

    return self if self.is_contiguous() else self.clone(memory_format=contiguous_format)


def _matrices(make):
    yield Sample(make(2, 3))
    yield Sample(make(4))
    yield Sample(make())


op("aten::view(Tensor(a) self, int[] size) -> Tensor(a)",
   kernel="view", view=True, variants="method",
   grad={"self": lambda grad, self_shape: grad.reshape(self_shape)},
   samples=lambda make: [Sample(make(2, 6), (3, 4)), Sample(make(2, 6), (-1,)), Sample(make(), (1, 1)), Sample(make(0, 3), (3, 0))],
   doc="The same elements in another shape; one size may be -1. RuntimeError when the strides do not allow it.")

op("aten::as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
   kernel="as_strided", view=True,
   grad={"self": lambda grad, self, size, stride, storage_offset: _unstride(grad, self, size, stride, storage_offset)},
   doc="A window on the storage with any sizes and strides inside it.")

op("aten::expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
   kernel="expand", view=True, variants="method",
   grad={"self": lambda grad, self_shape: grad.sum_to_size(self_shape)},
   samples=lambda make: [Sample(make(3, 1), (3, 4)), Sample(make(3), (2, 3)), Sample(make(), (2,)), Sample(make(2, 1), (-1, 3))],
   doc="Repeat dimensions of size 1 without copying; -1 keeps a size.")

op("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
   kernel="permute", view=True,
   grad={"self": lambda grad, dims: grad.permute(_inverse(dims))},
   samples=lambda make: [Sample(make(2, 3, 4), (2, 0, 1)), Sample(make(2, 3), (-1, 0)), Sample(make(), ())],
   reference="numpy.transpose", doc="Dimensions in another order.")

op("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
   kernel="transpose", view=True, variants="function method inplace",
   grad={"self": lambda grad, dim0, dim1: grad.transpose(dim0, dim1)},
   samples=lambda make: [Sample(make(2, 3, 4), 0, 2), Sample(make(2, 3), -1, 0), Sample(make(), 0, -1)],
   reference="numpy.swapaxes", doc="Two dimensions exchanged.")

op("aten::t(Tensor(a) self) -> Tensor(a)",
   kernel="t", view=True, variants="function method inplace",
   grad={"self": lambda grad: grad.t()},
   samples=_matrices, reference="numpy.transpose", doc="Transpose of a matrix; vectors and scalars stay as they are.")

op("aten::reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
   compose=_reshape, samples=lambda make: [Sample(make(2, 6), (3, 4)), Sample(make(2, 3, 2), (-1, 2))],
   reference="numpy.reshape", doc="The same elements in another shape: a view where possible, else a copy.")

op("aten::contiguous(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)",
   compose=_contiguous, variants="method", samples=_matrices,
   doc="The tensor itself when its elements lie in row-major order, else a copy in which they do.")


def _inverse(dims):
    n = len(dims)
    out = [0] * n
    for i, d in enumerate(dims):
        out[d % n] = i
    return out


def _unstride(grad, self, size, stride, storage_offset):
    """Gradient of as_strided: add each element of grad where it was read, index by index of the storage window."""
    from tinygrad_ext import zeros

    offset = self.storage_offset()
    flat = zeros(_extent(self.shape, self.stride()), dtype=grad.dtype)
    start = (offset if storage_offset is None else storage_offset) - offset
    flat.as_strided(size, stride, start).add_(grad)
    return flat.as_strided(self.shape, self.stride(), 0)


def _extent(shape, stride):
    return 1 + sum((s - 1) * st for s, st in zip(shape, stride)) if all(shape) else 0
