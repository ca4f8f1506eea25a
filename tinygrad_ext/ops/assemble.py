"""Putting tensors together and cutting them up by position: what is written in cat, stack and views."""

import itertools
import math

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped

_ALL = "bool int float half complex"


def _numpy(name, *args, **options):
    import numpy

    return getattr(numpy, name)(*args, **options)


# ---- at least so many dimensions -----------------------------------------------------------------------------------


def _at_least_2d(t):
    return t.reshape(1, 1) if t.dim() == 0 else t.unsqueeze(0) if t.dim() == 1 else t


def _at_least_3d(t):
    if t.dim() == 0:
        return t.reshape(1, 1, 1)
    return t.unsqueeze(0).unsqueeze(-1) if t.dim() == 1 else t.unsqueeze(-1) if t.dim() == 2 else t


def _of_each_rank(make):
    return [Sample(make(*shape)) for shape in ((), (3,), (2, 3), (2, 1, 3), (0,))]


def _rows(make):
    return [Sample([make(), make(3), make(2, 3), make(2, 1, 3)]), Sample([make(2, 3)])]


for _n, _function in ((2, _at_least_2d), (3, _at_least_3d)):
    op(
        f"aten::atleast_{_n}d(Tensor(a) self) -> Tensor(a)",
        compose=_function,
        variants="function",
        types=_ALL,
        samples=_of_each_rank,
        reference=f"numpy.atleast_{_n}d",
        doc=f"The tensor itself, or one of fewer dimensions as a view of {_n}"
        + (", a vector as a row." if _n == 2 else ": a vector is the middle one, a matrix the first two."),
    )
    op(
        f"aten::atleast_{_n}d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]",
        compose=lambda tensors, function=_function: tuple([function(t) for t in tensors]),
        variants="function",
        types=_ALL,
        tags="varargs",
        samples=_rows,
        doc=f"Each tensor itself, or as a view of {_n} dimensions.",
    )


# ---- together ------------------------------------------------------------------------------------------------------


def _column_stack(tensors):
    if len(tensors) == 0:
        raise RuntimeError("column_stack expects a non-empty TensorList: pass one tensor at least")
    return tg.cat([t.reshape(t.numel(), 1) if t.dim() < 2 else t for t in tensors], 1)


def _dstack(tensors):
    if len(tensors) == 0:
        raise RuntimeError("dstack expects a non-empty TensorList: pass one tensor at least")
    return tg.cat([_at_least_3d(t) for t in tensors], 2)


op(
    "aten::column_stack(Tensor[] tensors) -> Tensor",
    compose=_column_stack,
    variants="function out",
    types=_ALL,
    samples=lambda make: [
        Sample([make(3), make(3)]),
        Sample([make(3, 2), make(3), make(3, 1)]),
        Sample([make(2, 1, 3), make(2, 2, 3)]),
        Sample([make(), make()]),
    ],
    reference="numpy.column_stack",
    errors=[(lambda: _column_stack([]), RuntimeError, "column_stack expects a non-empty TensorList")],
    tags="casts",
    doc="Tensors side by side along the second dimension; a vector is a column.",
)

op(
    "aten::dstack(Tensor[] tensors) -> Tensor",
    compose=_dstack,
    variants="function out",
    types=_ALL,
    samples=lambda make: [
        Sample([make(3), make(3)]),
        Sample([make(3, 2), make(3, 2)]),
        Sample([make(2, 3, 1), make(2, 3, 4)]),
        Sample([make(), make()]),
    ],
    reference="numpy.dstack",
    errors=[(lambda: _dstack([]), RuntimeError, "dstack expects a non-empty TensorList")],
    tags="casts",
    doc="Tensors behind each other along the third dimension; a vector is one row of a plane.",
)


def _block_diag(tensors):
    if any(t.dim() > 2 for t in tensors):
        bad = next(t for t in tensors if t.dim() > 2)
        at = next(i for i, t in enumerate(tensors) if t is bad)
        raise RuntimeError(
            f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {at} has {bad.dim()} dimensions"
        )
    blocks = [_at_least_2d(t) for t in tensors]
    if not blocks:
        return tg.zeros(1, 0)
    dtype = blocks[0].dtype
    for t in blocks[1:]:
        dtype = tg.promote_types(dtype, t.dtype)
    width, before, rows = sum(t.shape[1] for t in blocks), 0, []
    for t in blocks:
        after = width - before - t.shape[1]
        rows.append(tg.constant_pad_nd(t.to(dtype), (before, after)))
        before += t.shape[1]
    return tg.cat(rows)


op(
    "aten::block_diag(Tensor[] tensors) -> Tensor",
    compose=_block_diag,
    variants="function",
    types=_ALL,
    tags="varargs",
    samples=lambda make: [
        Sample([make(2, 3), make(1, 2)]),
        Sample([make(3), make(), make(2, 2)]),
        Sample([make(2, 0), make(1, 1)]),
    ],
    reference=lambda tensors: _scipy_block_diag(tensors),
    errors=[(lambda: _block_diag([zeros(1, 1, 1)]), RuntimeError, "must have 2 or fewer dimensions. Input 0 has 3")],
    doc="Matrices along the diagonal of one whose other elements are zero; a vector is a row, a number 1 by 1.",
)


def _scipy_block_diag(tensors):
    import scipy.linalg

    return scipy.linalg.block_diag(*tensors)


def _refuse_more_than_memory(name, rows, bytes_of_a_row):
    """Of many elements there are more ways to choose than the machine can write down."""
    import os

    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if rows * bytes_of_a_row > there:
        raise RuntimeError(
            f"{name}(): not enough memory: {rows} rows take {rows * bytes_of_a_row} bytes, this machine has {there}; "
            "choose among fewer elements"
        )


def _cartesian_prod(tensors):
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}: cartesian_prod takes vectors")
    if len(tensors) == 0:
        raise RuntimeError("meshgrid expects a non-empty TensorList: cartesian_prod takes one vector at least")
    if len(tensors) == 1:
        return tensors[0].clone()
    rows = math.prod(t.shape[0] for t in tensors)
    _refuse_more_than_memory("cartesian_prod", rows, 2 * len(tensors) * tensors[0].dtype.itemsize)
    return tg.stack([t.reshape(-1) for t in tg.meshgrid(*tensors, indexing="ij")], 1)


op(
    "aten::cartesian_prod(Tensor[] tensors) -> Tensor",
    compose=_cartesian_prod,
    variants="function",
    types=_ALL,
    tags="varargs",
    samples=lambda make: [Sample([make(2), make(3)]), Sample([make(2), make(1), make(3)]), Sample([make(4)])],
    reference=lambda tensors: (
        _numpy("array", list(itertools.product(*tensors)), tensors[0].dtype) if len(tensors) > 1 else tensors[0]
    ),
    errors=[(lambda: _cartesian_prod([zeros(1, 1)]), RuntimeError, "Expect a 1D vector, but got shape")],
    doc="All ways to take one element of each vector, a row each: as many columns as vectors.",
)


def _combinations(self, r, with_replacement):
    if self.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}: combinations takes a vector")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}: combinations takes r elements at a time")
    count = math.comb(self.shape[0] + (r - 1 if with_replacement and r else 0), r)
    _refuse_more_than_memory("combinations", count, 64 + 56 * r)  # as rows of Python on the way
    if not count:
        return self[:0].reshape(0, r)
    if r == 2:
        return self[tg.triu_indices(*self.shape, *self.shape, 0 if with_replacement else 1).t()]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(self.shape[0]), r))
    return self[tg.tensor(rows)] if rows and r else self[:0].reshape((0, r) if r else (0,))


op(
    "aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    compose=_combinations,
    variants="function",
    types=_ALL,
    samples=lambda make: [
        Sample(make(4)),
        Sample(make(4), 3),
        Sample(make(3), 2, True),
        Sample(make(2), 3),
        Sample(make(3), 1),
    ],
    reference=lambda x, r=2, with_replacement=False: _numpy(
        "array",
        list((itertools.combinations_with_replacement if with_replacement else itertools.combinations)(x, r)),
        x.dtype,
    ).reshape(-1, r),
    errors=[(lambda: _combinations(zeros(2, 2), 2, False), RuntimeError, "Expect a 1D vector, but got shape")],
    doc="All ways to take r elements of a vector in their order, a row each.",
)


# ---- cut up --------------------------------------------------------------------------------------------------------


def _at(self, indices, dim):
    """The parts that begin at 0 and at these indices, as slices do: negative ones count from the end."""
    before = (slice(None),) * dim
    return tuple([self[(*before, slice(a, b))] for a, b in zip([0, *indices], [*indices, None])])


def _wrapped(self, dim, name):
    if self.dim() == 0:
        raise RuntimeError(f"{name} expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    return wrapped(dim, self.dim())


def _tensor_split_sections(self, sections, dim=0, name="tensor_split"):
    dim = _wrapped(self, dim, name)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    least, more = divmod(self.shape[dim], sections)
    return self.split([least + 1] * more + [least] * (sections - more), dim)


def _tensor_split_at(self, indices, dim=0, name="tensor_split"):
    return _at(self, indices, _wrapped(self, dim, name))


def _tensor_split_tensor(self, tensor_indices_or_sections, dim=0):
    given = tensor_indices_or_sections
    if given.dtype != tg.int64 or given.dim() > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor of "
            f"dtype long, but got a tensor with {given.dim()} dims and dtype {given.dtype}"
        )
    if given.dim() == 0:
        return _tensor_split_sections(self, int(given), dim)
    return _tensor_split_at(self, given.tolist(), dim)


def _split_reference(x, sections, dim=0):
    return _numpy("array_split", x, sections if isinstance(sections, int) else list(sections), axis=dim)


op(  # the first of the three, since a tensor of one element would do for a number
    "aten::tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0)"
    " -> Tensor(a)[]",
    compose=_tensor_split_tensor,
    variants="function method",
    types=_ALL,
    tags="data_dependent",
    samples=lambda make: [Sample(make(7, 2), make.ints(1, 4, (2,))), Sample(make(5), make.ints(2, 3, ()))],
    doc="As many views as a tensor of int64 says, or views that begin at 0 and at its elements.",
)
op(
    "aten::tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor(a)[]",
    compose=_tensor_split_sections,
    variants="function method",
    types=_ALL,
    samples=lambda make: [Sample(make(7, 2), 3), Sample(make(2, 5), 2, -1), Sample(make(2), 4), Sample(make(6), 1)],
    reference=_split_reference,
    errors=[(lambda: zeros(3).tensor_split(0), RuntimeError, "number of sections must be larger than 0, got 0")],
    doc="So many views along a dimension, as equal as can be: the first ones are longer by one.",
)
op(
    "aten::tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor(a)[]",
    compose=_tensor_split_at,
    variants="function method",
    types=_ALL,
    samples=lambda make: [Sample(make(7, 2), (2, 5)), Sample(make(2, 5), (1, -1), 1), Sample(make(3), (5, 1))],
    reference=lambda x, indices, dim=0: _numpy("array_split", x, list(indices), axis=dim),
    doc="Views along a dimension that begin at 0 and at these indices.",
)


def _directed(name, least, dim_of):
    def of(self, given):
        if self.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                f"with {self.dim()} dimensions!"
            )
        dim = dim_of(self)
        if isinstance(given, int):
            if given <= 0 or self.shape[dim] % given:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                    f"{self.shape[dim]} is not divisible by the split_size {given}!"
                )
            return _tensor_split_sections(self, given, dim)
        return _tensor_split_at(self, given, dim)

    return of


for _name, _least, _dim in (
    ("hsplit", 1, lambda t: 0 if t.dim() == 1 else 1),
    ("vsplit", 2, lambda t: 0),
    ("dsplit", 3, lambda t: 2),
):
    _function = _directed(_name, _least, _dim)
    _shape = {1: (6,), 2: (4, 2), 3: (2, 1, 6)}[_least]
    op(
        f"aten::{_name}.int(Tensor(a) self, int sections) -> Tensor(a)[]",
        compose=lambda self, sections, function=_function: function(self, sections),
        variants="function method",
        types=_ALL,
        samples=lambda make, shape=_shape: [Sample(make(*shape), 2), Sample(make(4, 6, 4), 2)],
        reference=f"numpy.{_name}",
        errors=[
            (
                lambda name=_name: getattr(zeros(5, 5, 5), name)(2),
                RuntimeError,
                "5 is not divisible by the split_size 2",
            )
        ],
        doc=f"So many equal views along the {('second', 'first', 'third')['hvd'.index(_name[0])]} dimension"
        + (", of a vector along its only one." if _name == "hsplit" else "."),
    )
    op(
        f"aten::{_name}.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
        compose=lambda self, indices, function=_function: function(self, indices),
        variants="function method",
        types=_ALL,
        samples=lambda make, shape=_shape: [Sample(make(*shape), (1, 3)), Sample(make(4, 6, 4), (2,))],
        reference=lambda x, indices, name=_name: _numpy(name, x, list(indices)),
        doc="Views along that dimension that begin at 0 and at these indices.",
    )
