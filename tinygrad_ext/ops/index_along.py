"""One index vector along one dimension."""

import tinygrad_ext as tg
from tinygrad_ext.core.grad.rules import scaled
from tinygrad_ext.ops import batching_index
from tinygrad_ext.ops.halves import in_float
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _at(self, dim, index):
    """NumPy index of the places."""
    return (slice(None),) * (dim % self.ndim) + (index,) if self.ndim else ...


def _written(self, dim, index, value):
    import numpy

    out = self.copy()
    out[_at(self, dim, numpy.atleast_1d(index))] = value
    return out


def _added(self, dim, index, source, *, alpha=1):
    import numpy

    out = self.copy()
    numpy.add.at(out, _at(self, dim, index), source * alpha)
    return out


def _bad(name, *args):
    """A call on a 2 x 3 tensor with index 5."""

    def call():
        return getattr(tg.zeros(2, 3), name)(0, tg.tensor([5]), *[tg.zeros(1, 3) if a == "source" else a for a in args])

    return call


op(
    "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
    batch=batching_index.index_select,
    kernel="index_select",
    types="bool int float half complex",
    variants="function method out",
    grad={"self": in_float(lambda grad, self_shape, dim, index: grad._index_select_backward(self_shape, dim, index))},
    jvp="linear",
    samples=lambda make: [
        Sample(make(3, 4), 0, make.ints(0, 3, (5,))),
        Sample(make(3, 4), -1, make.ints(0, 4, (2,))),
        Sample(make(3, 4), 1, make.of(2)),
        Sample(make(), 0, make.of([0])),
        Sample(make(3, 4), 0, make.ints(0, 1, (0,))),
    ],
    reference=lambda self, dim, index: self.take(index.reshape(-1) if self.ndim else 0, dim if self.ndim else None),
    errors=[(_bad("index_select"), IndexError, "index out of range in self")],
    tags="moves apart",
    doc="The entries of one dimension that a vector of int32 or int64 numbers names; entries may repeat.",
)

op(
    "aten::_index_select_backward(Tensor grad, int[] size, int dim, Tensor index) -> Tensor",
    batch=batching_index.index_select_backward,
    kernel="index_select_backward",
    types="bool int float half complex",
    variants="method",
    grad={"grad": lambda grad, dim, index: grad.index_select(dim, index)},
    jvp="linear",
    samples=lambda make: [Sample(make(2, 4), (3, 4), 0, make.of([1, 1]))],
    doc="Zeros of a size with grad added where index_select read it.",
)

op(
    "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    batch=batching_index.index_add,
    kernel="index_add",
    types="bool int float half complex",
    variants="function method inplace out",
    grad={
        "self": "grad",
        "source": lambda grad, dim, index, source_shape, alpha: scaled(grad.index_select(dim, index), alpha).reshape(
            source_shape
        ),
    },
    jvp="linear",
    samples=lambda make: [
        Sample(make(3, 4), 0, make.of([0, 2, 0]), make(3, 4)),
        Sample(make(3, 4), -1, make.of([1]), make(3, 1), alpha=2),
        Sample(make(3), 0, make.of([1, 1]), make(2)),
        Sample(make(3), 0, make.ints(0, 1, (0,)), make(0)),
    ],
    reference=_added,
    errors=[(_bad("index_add", "source"), RuntimeError, "index 5 is out of bounds for dimension 0 with size 2")],
    tags="others_apart",
    doc="Add source * alpha to the entries of one dimension that index names; repeated entries add up in order.",
)

op(
    "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    batch=batching_index.index_copy,
    kernel="index_copy",
    types="bool int float half complex",
    variants="function method inplace out",
    grad={
        "self": lambda grad, dim, index: grad.index_fill(dim, index, 0),
        "source": lambda grad, dim, index, source_shape: grad.index_select(dim, index).reshape(source_shape),
    },
    jvp="linear",
    samples=lambda make: [
        Sample(make(3, 4), 0, make.of([2, 0]), make(2, 4)),
        Sample(make(3, 4), -1, make.of([1]), make(3, 1)),
        Sample(make(3), 0, make.of(1), make()),
    ],
    reference=_written,
    errors=[(_bad("index_copy", "source"), IndexError, "index 5 is out of bounds for dimension 0 with size 2")],
    tags="moves others_apart",
    doc="Write source over the entries of one dimension that index (int64) names.",
)


def _sum_filled(grad, dim, index):
    """The sum over the entries that index names, each counted once however often it is named."""
    if not grad.dim():
        return grad
    named = index.new_zeros(grad.shape[dim]).index_fill_(0, index, 1)
    along = [-1 if d == dim % grad.dim() else 1 for d in range(grad.dim())]
    return grad.masked_fill(named.reshape(along) == 0, 0).sum()


_OF_VALUE = {"value": _sum_filled}

for _kind, _rules in (("Scalar", {}), ("Tensor", _OF_VALUE)):
    op(
        f"aten::index_fill.int_{_kind}(Tensor self, int dim, Tensor index, {_kind} value) -> Tensor",
        batch=batching_index.index_fill(_kind),
        kernel="index_fill",
        types="bool int float half complex",
        variants="function method inplace",
        grad={"self": lambda grad, dim, index: grad.index_fill(dim, index, 0), **_rules},
        jvp="linear" if _rules else lambda self_tangent, dim, index: self_tangent.index_fill(dim, index, 0),
        samples=(lambda make: [Sample(make(3, 4), 0, make.of([0, -1]), 3), Sample(make(3, 4), -1, make.of(1), 1)])
        if not _rules
        else lambda make: [
            Sample(make(3, 4), 0, make.of([0, 2]), make()),
            Sample(make(3, 4), -1, make.of([1, 0, 1, 1]), make()),
            Sample(make(), 0, make.of([0, 0]), make()),
        ],
        reference=_written,
        errors=[(_bad("index_fill", 1), IndexError, "index 5 is out of bounds for dimension 0 with size 2")],
        tags="apart:index",
        doc="Set the entries of one dimension that index (int64) names to one value: a number or a 0-dim tensor.",
    )

op(
    "aten::take(Tensor self, Tensor index) -> Tensor",
    batch=batching_index.take,
    kernel="take",
    types="bool int float half complex",
    variants="function method out",
    grad={"self": lambda grad, self_shape, index: _put_back(grad, self_shape, index)},
    jvp="linear",
    samples=lambda make: [
        Sample(make(3, 4), make.ints(-12, 12, (2, 5))),
        Sample(make(3), make.of(1)),
        Sample(make(2), make.ints(0, 1, (0,))),
    ],
    reference=lambda self, index: self.take(index),
    errors=[(lambda: _take(7), IndexError, "out of range")],
    tags="moves apart",
    doc="Elements by their number in row-major order, in the shape of index (int64); negative numbers count from the "
    "end.",
)


def _put_back(grad, shape, index):
    count = 1
    for s in shape:
        count *= s
    return grad._index_backward((count,), [index]).reshape(shape)


def _take(index):
    return tg.zeros(2, 3).take(tg.tensor([index]))
