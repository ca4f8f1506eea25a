"""Reading and writing parts of a tensor: tensor[index], and index tensors."""

import tinygrad_ext as tg
from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.ops import batching, batching_index
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.ops.shapes import meta


def _basic(make):
    for index in (
        0,
        -1,
        slice(None),
        slice(1, None),
        slice(0, 9, 2),
        slice(-2, -1),
        None,
        Ellipsis,
        (),
        (1, 2),
        (Ellipsis, 0),
        (slice(1), None, slice(None, 2)),
        (0, Ellipsis, None),
        slice(5, 9),
    ):
        yield Sample(make(3, 4, 2), index)
    yield Sample(make(), Ellipsis)
    yield Sample(make(0, 3), slice(0, 2))


def _bad(index):
    """A call that reads a 2 x 3 tensor with a wrong index."""

    def call():
        return tg.zeros(2, 3)[index]

    return call


op(
    "aten::__getitem__(Tensor(a) self, Any index) -> Tensor(a)",
    compose="getitem",
    variants="method",
    operator="getitem",
    samples=_basic,
    reference="operator.getitem",
    errors=[
        (_bad(2), IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (_bad((0, 0, 0)), IndexError, "too many indices for tensor of dimension 2"),
        (_bad(slice(None, None, -1)), ValueError, "step must be greater than zero"),
        (_bad(1.5), IndexError, "only integers, slices"),
    ],
    doc="The part of self that index names. Ints, slices, None and Ellipsis give a view; tensors, sequences and arrays "
    "of "
    "ints or bools pick elements and give a copy. Adjacent index tensors put their common shape where they stand, "
    "others in front. IndexError outside the bounds, ValueError for a step below 1.",
)

op(
    "aten::__setitem__(Tensor(a!) self, Any index, Any value) -> ()",
    compose="setitem",
    variants="method",
    operator="setitem",
    samples=lambda make: [Sample(make(3, 4), 0, 1), Sample(make(3, 4), (slice(1, None), 2), make(2))],
    gaps={
        "layout": "it writes to its first argument, which may not be repeated memory",
        "gradcheck": "it writes to its first argument, here a leaf; tests/ops/test_index.py differentiates it",
        "gradgradcheck": "it writes to its first argument, here a leaf; tests/ops/test_index.py differentiates it",
        "torch": "writing to a view of a leaf that requires a gradient is refused, here as there",
    },
    doc="Write value, a number or a tensor that broadcasts, to the part of self that index names.",
)

# The view behind an index without tensors. It stands four times so that the graph names it as its last step is named.
for _name in ("select", "slice", "unsqueeze", "alias"):
    op(
        f"aten::_{_name}(Tensor(a) self, Any index) -> Tensor(a)",
        batch=batching.basic_index,
        kernel="basic_index",
        view=True,
        variants="",
        grad={"self": lambda grad, self_shape, index: grad._basic_index_backward(self_shape, index)},
        samples=_basic,
        reference="operator.getitem",
        doc="View of the part that ints, slices, None and Ellipsis name.",
    )


op(
    "aten::_basic_index_backward(Tensor grad, int[] size, Any index) -> Tensor",
    batch=batching.basic_index_backward,
    kernel="basic_index_backward",
    types="bool int float half complex",
    variants="method",
    grad={"grad": lambda grad, index: grad[index]},
    jvp="linear",
    samples=lambda make: [Sample(make(2), (3, 2), 1), Sample(make(3, 1), (3, 2), (slice(None), slice(1, 2)))],
    shape=lambda grad, size, index: meta(size, grad.dtype),
    doc="Zeros of a size with grad in the part that index names: the derivative of reading it.",
)


# ---- index tensors -------------------------------------------------------------------------------------------------


def _picks(make):
    yield Sample(make(3, 4), [make.ints(-3, 3, (5,))])
    yield Sample(make(3, 4), [None, make.ints(0, 4, (2, 2), _int32())])
    yield Sample(make(3, 4, 2), [make.ints(0, 3, (2, 1)), None, make.ints(0, 2, (3,))])
    yield Sample(make(3, 4, 2), [None, make.ints(0, 4, (2,)), make.ints(0, 2, (2,))])
    yield Sample(make(3, 4), [make.bools(3)])
    yield Sample(make(3, 4, 2), [make.bools(3, 4)])
    yield Sample(make(3, 4), [make.ints(0, 3, (0,))])


def _int32():
    return tg.int32


def _puts(make):
    yield Sample(make(3, 4), [make.of([0, 2])], make(2, 4))
    yield Sample(make(3, 4), [make.of([1, -1])], make(4))
    yield Sample(make(3, 4), [make.of([0, 2]), make.of([[1], [3]])], make())
    yield Sample(make(3, 4), [make.bools(3, 4)], make())
    yield Sample(make(3, 4), [make.of([0, 0, 2])], make(3, 4), True)
    yield Sample(make(3, 4), [make.of([0, 0, 2])], make(), True)


def _grad_of_values(grad, indices, values_shape, accumulate):
    """What index_put wrote. A value that went to several places counts each once, however often the indices name it."""
    read = _read(grad, indices)
    ends = zip(reversed(read.shape), reversed(values_shape))
    if not accumulate and (read.dim() > len(values_shape) or any(n != m for n, m in ends)):
        number = read.new_ones((read.numel(),), dtype=by_name["int64"]).cumsum(0).reshape(read.shape)
        last = number.new_zeros(grad.shape).index_put(indices, number)
        read = read.masked_fill(_read(last, indices) != number, 0)
    return _sum_to(read, values_shape)


def _as_numpy_index(indices):
    return tuple(slice(None) if i is None else i for i in indices)


def _reference_index(self, indices):
    return self[_as_numpy_index(indices)]


def _reference_put(self, indices, values, accumulate=False):
    import numpy

    out = self.copy()
    if accumulate:
        numpy.add.at(out, _as_numpy_index(indices), values)
    else:
        out[_as_numpy_index(indices)] = values
    return out


op(
    "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    batch=batching_index.index_of,
    kernel="index",
    types="bool int float half complex",
    variants="",
    grad={"self": lambda grad, self_shape, indices: grad._index_backward(self_shape, indices)},
    jvp="linear",
    samples=_picks,
    reference=_reference_index,
    tags="moves",
    doc="Elements at index tensors, one for each dimension or None for all of it; masks stand for as many "
    "dimensions as they have. Indices broadcast; negative ones count from the end. IndexError outside the bounds.",
)

op(
    "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    batch=batching_index.index_put,
    kernel="index_put",
    types="bool int float half complex",
    variants="function method inplace",
    grad={
        "self": lambda grad, indices, accumulate: grad if accumulate else grad.index_put(indices, grad.new_zeros(())),
        "values": _grad_of_values,
    },
    jvp="linear",
    samples=_puts,
    tags="data_dependent_grad moves others_apart",  # a mask among the indices
    reference=_reference_put,
    doc="Write values, which broadcast, to the elements at index tensors; with accumulate they are added, repeated "
    "indices as "
    "often as they come. Without it the last of repeated indices wins. RuntimeError when the dtypes differ.",
)

op(
    "aten::_index_backward(Tensor grad, int[] size, Tensor?[] indices) -> Tensor",
    batch=batching_index.index_backward,
    kernel="index_backward",
    types="bool int float half complex",
    variants="method",
    grad={"grad": lambda grad, indices: _read(grad, indices)},
    jvp="linear",
    samples=lambda make: [Sample(make(3, 2), (4, 2), [make.of([0, 3, 0])])],
    doc="Zeros of a size with grad added where the indices read it: the derivative of index.",
)


def _read(grad, indices):
    """What index tensors read from a gradient.

    Beside others, one without dimensions must not become a number: the common shape of tensors that stand apart comes
    first, a number has no say in it.
    """
    wide = any(i is not None and i.dim() for i in indices)
    return grad[tuple(slice(None) if i is None else i.reshape(1) if wide and not i.dim() else i for i in indices)]


def _sum_to(grad, shape):
    """Undo broadcasting, leading ones included."""
    kept = [s for s in shape]
    while len(kept) > grad.dim() and kept[0] == 1:
        kept.pop(0)
    return grad.sum_to_size(kept).reshape(shape)
