"""Views that show a part of a tensor."""

from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import meta


def _like_input(grad_output, input_sizes, *_):
    return meta(input_sizes, grad_output.dtype)


# ---- one index, a range --------------------------------------------------------------------------------------------

op("aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
   kernel="select", view=True,
   grad={"self": lambda grad, self_shape, dim, index: grad._select_backward(self_shape, dim, index)},
   samples=lambda make: [Sample(make(3, 4), 0, 1), Sample(make(3, 4), -1, -2), Sample(make(2, 0), 0, 1), Sample(make(3), 0, 2)],
   reference=lambda x, dim, index: x.take(index, dim),
   errors=[(lambda: zeros(2, 3).select(0, 2), IndexError, "index 2 out of range for tensor of size [2, 3] at dimension 0"),
           (lambda: zeros(()).select(0, 0), IndexError, "cannot be applied to a 0-dim tensor")],
   doc="One index of a dimension, which goes away. IndexError when the index lies outside the dimension.")

op("aten::narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
   kernel="narrow", view=True,
   grad={"self": lambda grad, self_shape, dim, start: grad._slice_backward(self_shape, dim, start, 1)},
   samples=lambda make: [Sample(make(4, 3), 0, 1, 2), Sample(make(4, 3), -1, -2, 2), Sample(make(4, 3), 0, 4, 0),
                         Sample(make(0, 3), 1, 1, 1)],
   reference=lambda x, dim, start, length: x.take(range(start, start + length), dim),
   errors=[(lambda: zeros(4).narrow(0, 2, 3), RuntimeError, "start (2) + length (3) exceeds dimension size (4)"),
           (lambda: zeros(4).narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
           (lambda: zeros(4).narrow(0, 5, 0), IndexError, "start out of range"),
           (lambda: zeros(()).narrow(0, 0, 0), RuntimeError, "cannot be applied to a 0-dim tensor")],
   doc="`length` elements of a dimension, from `start` on; a negative start counts from the end.")

op("aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
   kernel="slice", view=True, variants="method",
   grad={"self": lambda grad, self_shape, dim, start, step: grad._slice_backward(self_shape, dim, start, step)},
   samples=lambda make: [Sample(make(5, 3), 0, 1, 4, 2), Sample(make(5, 3), 1, -2), Sample(make(5, 3)), Sample(make(4), 0, 3, 1),
                         Sample(make(4), 0, -9, 9, 3)],
   reference=lambda x, dim=0, start=None, end=None, step=1: x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)],
   errors=[(lambda: zeros(4).slice(0, 0, 4, 0), ValueError, "step must be greater than zero")],
   doc="Every `step`-th element of a dimension from `start` up to `end`, read as Python reads a slice; behind x[a:b:c].")

op("aten::_select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
   kernel="select_backward", shape=_like_input, variants="method",
   grad={"grad_output": lambda grad, dim, index: grad.select(dim, index)},
   samples=lambda make: [Sample(make(4), (3, 4), 0, 1), Sample(make(3), (3, 4), -1, -2)],
   doc="Zeros of the given shape with grad_output at one index: the derivative of select.")

op("aten::_slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int step) -> Tensor",
   kernel="slice_backward", shape=_like_input, variants="method",
   grad={"grad_output": lambda grad, grad_output_shape, dim, start, step: _slice_again(grad, grad_output_shape, dim, start, step)},
   samples=lambda make: [Sample(make(2, 3), (5, 3), 0, 1, 2), Sample(make(2), (4,), 0, -2, 1), Sample(make(0), (4,), 0, None, 1)],
   doc="Zeros of the given shape with grad_output in one slice: the derivative of slice and narrow.")


def _slice_again(grad, shape, dim, start, step):
    """The part of grad where `shape` had been put."""
    size = grad.shape[dim]
    start = 0 if start is None else max(int(start) + size, 0) if int(start) < 0 else min(int(start), size)
    return grad.slice(dim, start, start + shape[dim] * step, step)
