"""Views: other shapes of the same memory."""

from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


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
   grad={"self": lambda grad, self_geometry, size, stride, storage_offset: _unstride(
       grad, self_geometry, size, stride, storage_offset)},
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
   kernel="reshape", view=True,
   grad={"self": lambda grad, self_shape: grad.reshape(self_shape)},
   samples=lambda make: [Sample(make(2, 6), (3, 4)), Sample(make(2, 3, 2), (-1, 2)), Sample(make(0, 3), (3, 0)), Sample(make(), (1,))],
   reference="numpy.reshape",
   errors=[(lambda: zeros(6).reshape(4, -1), RuntimeError, "shape '[4, -1]' is invalid for input of size 6"),
           (lambda: zeros(6).reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
           (lambda: zeros(0).reshape(0, -1), RuntimeError, "is ambiguous")],
   doc="The same elements in another shape: a view where possible, else a copy.")

op("aten::contiguous(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)",
   compose=_contiguous, variants="method", samples=_matrices,
   doc="The tensor itself when its elements lie in row-major order, else a copy in which they do.")


op("aten::squeeze(Tensor(a) self) -> Tensor(a)",
   kernel="squeeze", view=True, variants="function method inplace",
   grad={"self": lambda grad, self_shape: grad.reshape(self_shape)},
   samples=lambda make: [Sample(make(1, 3, 1)), Sample(make(2, 3)), Sample(make()), Sample(make(1, 1))],
   reference="numpy.squeeze", doc="The tensor without its dimensions of size 1.")

op("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
   kernel="squeeze_dims", view=True, variants="function method inplace",
   grad={"self": lambda grad, self_shape: grad.reshape(self_shape)},
   samples=lambda make: [Sample(make(1, 3, 1), 0), Sample(make(1, 3, 1), -1), Sample(make(1, 3), 1), Sample(make(), 0)],
   errors=[(lambda: zeros(2, 1).squeeze(2), IndexError, "expected to be in range of [-2, 1], but got 2")],
   doc="The tensor without one dimension, if its size is 1.")

op("aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
   kernel="squeeze_dims", view=True, variants="function method inplace",
   grad={"self": lambda grad, self_shape: grad.reshape(self_shape)},
   samples=lambda make: [Sample(make(1, 3, 1), (0, 2)), Sample(make(1, 3, 1), (-1, 1)), Sample(make(1, 2), ())],
   errors=[(lambda: zeros(2, 1).squeeze((0, 0)), RuntimeError, "dim 0 appears multiple times")],
   doc="The tensor without those of the given dimensions whose size is 1.")

op("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
   kernel="unsqueeze", view=True, variants="function method inplace",
   grad={"self": lambda grad, dim: grad.squeeze(dim)},
   samples=lambda make: [Sample(make(2, 3), 0), Sample(make(2, 3), -1), Sample(make(2, 3), 1), Sample(make(), 0), Sample(make(0), -2)],
   reference="numpy.expand_dims",
   errors=[(lambda: zeros(2).unsqueeze(2), IndexError, "expected to be in range of [-2, 1], but got 2")],
   doc="A new dimension of size 1 at the given place.")

# ---- like another tensor -------------------------------------------------------------------------------------------

op("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
   compose=lambda self, other: self.expand(other.shape), variants="method",
   samples=lambda make: [Sample(make(3, 1), make(3, 4)), Sample(make(), make(2))],
   doc="self repeated without copying to the shape of other.")

op("aten::broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)",
   compose=lambda self, size: self.expand(size),
   samples=lambda make: [Sample(make(3, 1), (3, 4)), Sample(make(), (2,)), Sample(make(3), (2, 3))],
   reference="numpy.broadcast_to", doc="self repeated without copying to the given shape.")

op("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
   compose=lambda self, other: self.view(other.shape), variants="method",
   samples=lambda make: [Sample(make(2, 6), make(3, 4)), Sample(make(1), make())],
   doc="self as a view in the shape of other.")

op("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
   compose=lambda self, other: self.reshape(other.shape), variants="method",
   samples=lambda make: [Sample(make(2, 6), make(3, 4)), Sample(make(1), make())],
   doc="self in the shape of other: a view where possible, else a copy.")

op("aten::sum_to_size(Tensor self, int[] size) -> Tensor",
   compose=lambda self, size: _sum_to_size(self, size), variants="method",
   samples=lambda make: [Sample(make(2, 3), (3,)), Sample(make(2, 3), (2, 1)), Sample(make(2, 3), ()), Sample(make(2, 3), (2, 3)),
                         Sample(make(4, 2, 3), (2, 1)), Sample(make(0, 3), (1, 3))],
   errors=[(lambda: zeros(2, 3).sum_to_size(2), RuntimeError, "size {[2]} is not expandable to size {[2, 3]}")],
   doc="Sum over the dimensions along which the given shape would be repeated to become self's: the reverse of expand.")


def _sum_to_size(self, size):
    shape = self.shape
    if shape == tuple(size):
        return self
    extra = len(shape) - len(size)
    if extra < 0 or any(s != 1 and s != t for s, t in zip(size, shape[extra:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    kept = [i for i, s in enumerate(size, extra) if s == 1 and shape[i] != 1]
    if kept:
        self = self.sum(kept, keepdim=True)
    return self.sum(list(range(extra))) if extra else self


def _inverse(dims):
    n = len(dims)
    out = [0] * n
    for i, d in enumerate(dims):
        out[d % n] = i
    return out


def _unstride(grad, geometry, size, stride, storage_offset):
    """Gradient of as_strided: add each element of grad where it was read, index by index of the storage window."""
    from tinygrad_ext import zeros

    sizes, strides, offset = geometry
    flat = zeros(_extent(sizes, strides), dtype=grad.dtype)
    start = (offset if storage_offset is None else storage_offset) - offset
    flat.as_strided(size, stride, start).add_(grad)
    return flat.as_strided(sizes, strides, 0)


def _extent(shape, stride):
    return 1 + sum((s - 1) * st for s, st in zip(shape, stride)) if all(shape) else 0
