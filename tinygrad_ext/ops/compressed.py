"""Rows of sparse matrices: the row of each element, and where in the list of elements each row begins."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros


def _kind(name, argument, given):
    if given.is_floating_point() or given.is_complex() or given.dtype == tg.bool:
        raise NotImplementedError(
            f"\"{name}_cpu\" not implemented for '{given.dtype}': {argument} are int32 or int64 numbers of elements"
        )


def _to_starts(self, size, out_int32):
    _kind("convert_indices_from_coo_to_csr", "indices", self)
    if self.dim() > 1:
        raise RuntimeError(
            "_convert_indices_from_coo_to_csr: Input is supposed to be a vector, but got "
            f"{self.dim()} dimensional tensor."
        )
    rows = tg.arange(size + 1, device=self.device, dtype=self.dtype)
    return functions["searchsorted"](self.reshape(-1), rows, out_int32=out_int32)


def _to_rows(crow_indices, col_indices, out_int32, transpose):
    _kind("convert_indices_from_csr_to_coo", "crow_indices", crow_indices)
    _kind("convert_indices_from_csr_to_coo", "col_indices", col_indices)
    if crow_indices.dim() != col_indices.dim() or crow_indices.shape[:-1] != col_indices.shape[:-1]:
        raise RuntimeError(
            "_convert_indices_from_csr_to_coo: expected crow_indices and col_indices with the same sizes before the "
            f"last, got {list(crow_indices.shape)} and {list(col_indices.shape)}"
        )
    if not crow_indices.dim() or not crow_indices.shape[-1]:
        raise RuntimeError(
            "_convert_indices_from_csr_to_coo: crow_indices hold at least one number, where the last row ends"
        )
    whole = tg.int32 if out_int32 else tg.int64
    batch, count = crow_indices.shape[:-1], col_indices.shape[-1]
    places = tg.arange(count, device=col_indices.device, dtype=crow_indices.dtype).expand((*batch, count)).contiguous()
    rows = functions["searchsorted"](crow_indices[..., 1:].contiguous(), places, right=True).to(whole)
    cols = col_indices.to(whole)
    found = [cols, rows] if transpose else [rows, cols]
    for i in reversed(range(len(batch))):  # which matrix of the batch it is, one row for each of its dimensions
        steps = tg.arange(batch[i], device=cols.device, dtype=whole).reshape((-1, *(1,) * (len(batch) - i)))
        found.insert(0, steps.expand((*batch, count)))
    return tg.stack([t.reshape(-1) for t in found])


def _samples_of_rows(make):
    yield Sample(make.of([0, 0, 2, 3]), 5)
    yield Sample(make.of([1, 1]), 2, out_int32=True)
    yield Sample(make.of([]).long(), 3)


op(
    "aten::_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
    compose=_to_starts,
    types="int",
    variants="function out",
    samples=_samples_of_rows,
    reference=lambda x, size, *, out_int32=False: _np_starts(x, size, out_int32),
    errors=[
        (
            lambda: functions["_convert_indices_from_coo_to_csr"](zeros(2), 3),
            NotImplementedError,
            "int32 or int64 numbers",
        ),
        (
            lambda: functions["_convert_indices_from_coo_to_csr"](zeros(2, 2).long(), 3),
            RuntimeError,
            "supposed to be a vector",
        ),
    ],
    doc="Where in the list of a sparse matrix's elements each of its size rows begins, and where the last one ends, "
    "when self has the row of each element, rising.",
)


def _np_starts(x, size, out_int32):
    import numpy

    starts = numpy.bincount(x.astype(numpy.int64), minlength=size)[:size].cumsum()
    return numpy.concatenate([[0], starts]).astype(numpy.int32 if out_int32 else numpy.int64)


def _samples_of_starts(make):
    for transpose in (False, True):
        yield Sample(make.of([0, 2, 2, 3]), make.of([1, 0, 1]), transpose=transpose)
    yield Sample(make.of([[0, 2, 3], [0, 1, 3]]), make.of([[1, 0, 1], [0, 0, 1]]), out_int32=True)
    yield Sample(make.of([0, 0]), make.of([]).long())


def _np_rows(starts, cols, *, out_int32=False, transpose=False):
    import numpy

    batch, parts = starts.shape[:-1], []
    for place in numpy.ndindex(*batch):
        rows = numpy.repeat(numpy.arange(starts.shape[-1] - 1), numpy.diff(starts[place]))
        pair = [cols[place], rows] if transpose else [rows, cols[place]]
        parts.append(numpy.stack([*(numpy.full(len(rows), i) for i in place), *pair]))
    return numpy.concatenate(parts, 1).astype(numpy.int32 if out_int32 else numpy.int64)


op(
    "aten::_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, "
    "bool transpose=False) -> Tensor",
    compose=_to_rows,
    types="int",
    variants="function out",
    samples=_samples_of_starts,
    reference=_np_rows,
    errors=[
        (
            lambda: functions["_convert_indices_from_csr_to_coo"](zeros(3), zeros(2)),
            NotImplementedError,
            "int32 or int64 numbers",
        ),
        (
            lambda: functions["_convert_indices_from_csr_to_coo"](zeros(3).long(), zeros(1, 2).long()),
            RuntimeError,
            "the same sizes before the last",
        ),
        (
            lambda: functions["_convert_indices_from_csr_to_coo"](zeros(0).long(), zeros(0).long()),
            RuntimeError,
            "at least one number",
        ),
    ],
    doc="Row and column of each element of a sparse matrix, one below the other, from the place where each row begins "
    "in the list of elements, and where the last one ends (crow_indices), and each element's column; with transpose "
    "column and row. Before them stands which matrix of a batch it is, a row for each dimension.",
)
