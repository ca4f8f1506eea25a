"""Masks: nonzero, and reading and writing under a bool mask."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_masks
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

op(
    "aten::where(Tensor condition) -> Tensor(a)[]",
    compose=lambda condition: condition.nonzero(as_tuple=True),
    variants="function",
    samples=lambda make: [Sample(make.bools(3, 4)), Sample(make.bools(5))],
    reference="numpy.nonzero",
    gaps={"shape": "how many there are depends on the values"},
    doc="Indices of the true elements, one vector for each dimension.",
)


def _where_method(self, condition, other):
    return tg.where(condition, self, other)


op(
    "aten::where.method(Tensor self, Tensor condition, Tensor other) -> Tensor",
    compose=_where_method,
    variants="method",
    numbers="other",
    samples=lambda make: [Sample(make(3, 4), make.bools(4), make(3, 1)), Sample(make(()), make.bools(2), make(2))],
    doc="self where condition is true, other elsewhere.",
)


# ---- positions -----------------------------------------------------------------------------------------------------


def _reference_nonzero(self):
    import numpy

    return numpy.argwhere(self)


def _as_tuple(self, as_tuple, out):
    if out is not None and as_tuple:
        raise RuntimeError(
            "nonzero(): out is one tensor of rows, as_tuple=True asks for a vector of each dimension: leave one out"
        )
    if not as_tuple:
        return self.nonzero() if out is None else tg.nonzero(self, out=out)
    return tuple((self if self.dim() else self.reshape(1)).nonzero().unbind(1))


def _some(make):
    for shape in ((3, 4), (7,), (2, 1, 3), (0, 3), (2, 0), ()):
        yield Sample(make(*shape, low=0, high=1) if not make.dtype.is_floating_point else make(*shape))


op(
    "aten::nonzero(Tensor self) -> Tensor",
    batch=batching_masks.nonzero,
    kernel="nonzero",
    variants="function method out",
    types="bool int float half complex",
    samples=_some,
    reference=_reference_nonzero,
    refuses={"out": "nonzero: Expected out tensor to have scalar type {wanted} but got scalar type {got}"},
    gaps={"shape": "how many rows there are depends on the values"},
    tags="apart",
    doc="Indices of the elements that are not zero, one row each, in row-major order (int64).",
)

op(
    "aten::nonzero.as_tuple(Tensor self, *, bool as_tuple, Tensor? out=None) -> Tensor(a)[]",
    compose=_as_tuple,
    samples=lambda make: [Sample(make(3, 4), as_tuple=True), Sample(make(), as_tuple=True)],
    gaps={"shape": "how many there are depends on the values"},
    errors=[
        (
            lambda: tg.nonzero(zeros(2), as_tuple=True, out=zeros(2, 1)),
            RuntimeError,
            "nonzero(): out is one tensor of rows",
        ),
    ],
    doc="Indices of the elements that are not zero; with as_tuple one vector for each dimension.",
)

op(
    "aten::argwhere(Tensor self) -> Tensor",
    compose=lambda self: self.nonzero(),
    samples=_some,
    reference="numpy.argwhere",
    gaps={"shape": "how many there are depends on the values"},
    doc="Indices of the elements that are not zero, one row each.",
)


def _nonzero_static(self, size, fill_value):
    """What nonzero finds, filled up; where it cannot tell how much that is, the rows go to their rank among those that
    are not zero, and what has no place to a row more, which is left out."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    if not self.is_meta and not hasattr(self, "level"):
        missing = tg.full((size, self.dim()), fill_value, dtype=tg.int64, device=self.device)
        return tg.cat((self.detach().nonzero()[:size], missing))[:size]
    flat = (self.detach() != 0).reshape(-1)
    rank = flat.cumsum(0)
    at = tg.where(flat & (rank <= size), rank - 1, size)
    rows = tg.full((size + 1, self.dim()), fill_value, dtype=tg.int64, device=self.device)
    if not self.dim() or not self.numel():
        return rows.narrow(0, 0, size)
    places = tg.stack(tg.unravel_index(tg.arange(self.numel(), device=self.device), self.shape), -1)
    return rows.scatter(0, at.unsqueeze(-1).expand(places.shape), places).narrow(0, 0, size)


def _reference_static(x, size, fill_value=-1):
    import numpy

    found = numpy.argwhere(x)[:size]
    return numpy.concatenate([found, numpy.full((size - len(found), x.ndim), fill_value)])


op(
    "aten::nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
    compose=_nonzero_static,
    jvp="none",
    types="bool int float half complex",
    variants="function method out",
    samples=lambda make: [
        Sample(make.of([[1, 0, 2], [0, 0, 3]]), size=2),
        Sample(make.of([[1, 0, 2], [0, 0, 3]]), size=5, fill_value=7),
        Sample(make.of([0, 4]), size=0),
        Sample(make(0, 2), size=2),
    ],
    reference=_reference_static,
    errors=[(lambda: tg.zeros(2).nonzero_static(size=-1), RuntimeError, "must be an non-negative integer")],
    doc="The first size rows of nonzero, and rows of fill_value where there are fewer: so the shape is known before.",
)

# ---- under a mask --------------------------------------------------------------------------------------------------


def _masked(make):
    yield Sample(make(3, 4), make.bools(3, 4))
    yield Sample(make(3, 4), make.bools(4))
    yield Sample(make(4), make.bools(3, 1))
    yield Sample(make(), make.bools())
    yield Sample(make(0, 2), make.bools(0, 2))


def _reference_select(self, mask):
    import numpy

    self, mask = numpy.broadcast_arrays(self, mask)
    return self[mask]


def _reference_fill(self, mask, value):
    import numpy

    return numpy.where(mask, numpy.asarray(value).astype(self.dtype), self)


def _reference_scatter(self, mask, source):
    import numpy

    self, mask = (numpy.array(a) for a in numpy.broadcast_arrays(self, mask))
    self[mask] = source.reshape(-1)[: mask.sum()]
    return self


def _bad_mask(name, *args):
    def call():
        return getattr(tg.zeros(2, 3), name)(tg.zeros(2, 3), *args)

    return call


op(
    "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
    batch=batching_masks.masked_select,
    kernel="masked_select",
    types="bool int float half complex",
    variants="function method out",
    samples=_masked,
    reference=_reference_select,
    grad={"self": lambda grad, self_shape, mask: grad._masked_select_backward(self_shape, mask)},
    jvp="linear",
    errors=[(_bad_mask("masked_select"), RuntimeError, "expected BoolTensor for mask")],
    gaps={"shape": "how many elements there are depends on the values of the mask"},
    tags="moves apart",
    doc="The elements under the true places of a bool mask as a vector; self and mask broadcast.",
)

op(
    "aten::_masked_select_backward(Tensor grad, int[] size, Tensor mask) -> Tensor",
    batch=batching_masks.masked_select_backward,
    kernel="masked_select_backward",
    types="bool int float half complex",
    variants="method",
    grad={"grad": lambda grad, mask: grad.masked_select(mask)},
    jvp="linear",
    samples=lambda make: [Sample(make(2), (3,), make.of([True, False, True]))],
    gaps={"layout": "grad has as many elements as the mask true ones, and a repeated mask has others"},
    tags="data_dependent_grad",
    doc="Zeros with grad's elements in order under the mask: the derivative of masked_select, before broadcasting is "
    "undone.",
)

op(
    "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    batch=batching_masks.masked_fill("Scalar"),
    kernel="masked_fill",
    types="bool int float half complex",
    variants="function method inplace",
    grad={"self": lambda grad, mask: grad.masked_fill(mask, 0)},
    jvp=lambda self_tangent, mask: self_tangent.masked_fill(mask, 0),
    samples=lambda make: [Sample(*s.args, 2) for s in _masked(make)],
    reference=_reference_fill,
    errors=[(_bad_mask("masked_fill", 1), RuntimeError, "only supports boolean masks")],
    doc="self with one value under the true places of a bool mask. The mask broadcasts; the value takes self's dtype.",
)

op(
    "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    batch=batching_masks.masked_fill("Tensor"),
    kernel="masked_fill",
    types="bool int float half complex",
    variants="function method inplace",
    grad={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "value": lambda grad, mask: grad.masked_fill(mask.logical_not(), 0).sum(),
    },
    jvp="linear",
    samples=lambda make: [Sample(*s.args, make()) for s in _masked(make)],
    reference=_reference_fill,
    errors=[(lambda: _fill_with_vector(), RuntimeError, "only supports a 0-dimensional value tensor")],
    doc="self with the value of a 0-dim tensor under the true places of a bool mask.",
)


def _fill_with_vector():
    return tg.zeros(2).masked_fill(tg.ones(2) > 0, tg.ones(2))


op(
    "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    batch=batching_masks.masked_scatter,
    kernel="masked_scatter",
    types="bool int float half complex",
    variants="function method inplace",
    grad={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "source": lambda grad, mask, source_shape: _fill_up(grad.masked_select(mask), source_shape),
    },
    jvp="linear",
    samples=lambda make: [
        Sample(make(3, 4), make.bools(3, 4), make(12)),
        Sample(make(3, 4), make.bools(4), make(4, 3)),
    ],
    tags="data_dependent_grad moves",
    reference=_reference_scatter,
    doc="self with the elements of source, in order, under the true places of a bool mask.",
)


def _fill_up(used, shape):
    """The gradients of the elements that were used, zeros for the rest of source."""
    count = 1
    for s in shape:
        count *= s
    return tg.cat([used, used.new_zeros((count - used.numel(),))]).reshape(shape)
