"""Reading and writing parts of a tensor with tensor[index]."""

from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _basic(make):
    for index in (0, -1, slice(None), slice(1, None), slice(0, 9, 2), slice(-2, -1), None, Ellipsis, (), (1, 2), (Ellipsis, 0),
                  (slice(1), None, slice(None, 2)), (0, Ellipsis, None), slice(5, 9)):
        yield Sample(make(3, 4, 2), index)
    yield Sample(make(), Ellipsis)
    yield Sample(make(0, 3), slice(0, 2))


def _bad(index):
    """A call that reads a 2 x 3 tensor with a wrong index."""

    def call():
        from tinygrad_ext import zeros

        return zeros(2, 3)[index]

    return call


op("aten::__getitem__(Tensor(a) self, Any index) -> Tensor(a)",
   compose="getitem", variants="method", operator="getitem", samples=_basic, reference="operator.getitem",
   errors=[(_bad(2), IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
           (_bad((0, 0, 0)), IndexError, "too many indices for tensor of dimension 2"),
           (_bad(slice(None, None, -1)), ValueError, "step must be greater than zero"),
           (_bad(1.5), IndexError, "only integers, slices")],
   doc="The part of self that index names. Ints, slices, None and Ellipsis give a view; tensors, sequences and arrays of "
       "ints or bools pick elements and give a copy. Adjacent index tensors put their common shape where they stand, others "
       "in front. IndexError outside the bounds, ValueError for a step below 1.")

op("aten::__setitem__(Tensor(a!) self, Any index, Any value) -> ()",
   compose="setitem", variants="method", operator="setitem",
   doc="Write value, a number or a tensor that broadcasts, to the part of self that index names.")

# The view behind an index without tensors. It stands four times so that the graph names it as its last step is named.
for _name in ("select", "slice", "unsqueeze", "alias"):
    op(f"aten::_{_name}(Tensor(a) self, Any index) -> Tensor(a)",
       kernel="basic_index", view=True, variants="",
       grad={"self": lambda grad, self_shape, index: grad._basic_index_backward(self_shape, index)},
       samples=_basic, reference="operator.getitem", doc="View of the part that ints, slices, None and Ellipsis name.")


def _meta_of(grad, size, index):
    from tinygrad_ext.ops.shapes import meta

    return meta(size, grad.dtype)


op("aten::_basic_index_backward(Tensor grad, int[] size, Any index) -> Tensor",
   kernel="basic_index_backward", variants="method",
   grad={"grad": lambda grad, index: grad[index]},
   samples=lambda make: [Sample(make(2), (3, 2), 1), Sample(make(3, 1), (3, 2), (slice(None), slice(1, 2)))],
   shape=_meta_of, doc="Zeros of a size with grad in the part that index names: the derivative of reading it.")
