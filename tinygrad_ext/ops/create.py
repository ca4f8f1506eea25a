"""Making tensors: empty, filled, copied, converted."""

from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _sizes(make):
    for size in ((2, 3), (), (0, 4), (5,)):
        yield Sample(size, dtype=make.dtype)


def _likes(make):
    yield Sample(make(2, 3))
    yield Sample(make(0, 2))
    yield Sample(make())


op("aten::empty(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
   "bool requires_grad=False) -> Tensor",
   kernel="empty", variants="function", samples=_sizes,
   doc="Tensor of the given size whose elements are not set.")

op("aten::zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
   "bool requires_grad=False) -> Tensor",
   kernel="zeros", variants="function", samples=_sizes,
   doc="Tensor of zeros.")

op("aten::full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
   "bool? pin_memory=None, bool requires_grad=False) -> Tensor",
   kernel="full", variants="function",
   doc="Tensor filled with one value, whose kind of number gives the dtype unless one is named.")

op("aten::tensor(Any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False, bool pin_memory=False) "
   "-> Tensor",
   kernel="tensor", variants="function",
   doc="Tensor with a copy of data: a number, nested sequences of numbers, an array, or another tensor.")

op("aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
   "bool? pin_memory=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor",
   kernel="full_like", variants="function",
   doc="Tensor of the same shape, dtype and device, filled with one value.")

op("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
   kernel="clone", grad={"self": "grad"}, samples=_likes, reference="numpy.copy",
   doc="Copy with memory of its own.")

op("aten::detach(Tensor self) -> Tensor",
   kernel="detach", samples=_likes,
   doc="The same memory outside the graph.")

op("aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
   kernel="copy", takes_out=True, variants="inplace", grad={"src": "grad"}, numbers="src",
   doc="copy_: overwrite self with src, which broadcasts and converts to self's shape and dtype.")

op("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
   kernel="fill", takes_out=True, variants="inplace", grad={"self": lambda grad: grad * 0},
   doc="fill_: set every element to one value.")

op("aten::_cast(Tensor self, ScalarType dtype) -> Tensor",
   kernel="cast", grad={"self": lambda grad, self_dtype: grad.to(self_dtype)}, variants="method",
   doc="Copy in another dtype.")
