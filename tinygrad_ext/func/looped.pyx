# cython: language_level=3
"""The fallback of vmap: an op without a rule runs once for each sample, and the results are stacked."""
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.data.tensor cimport Carried, Tensor

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.registry import functions

counts = {}         # name of an op -> how often it ran sample by sample


def run(level, Op op not None, args):
    """The results of an op for each sample, stacked."""
    cdef list rows = []
    cdef Py_ssize_t k, size = level.size
    if "data_dependent" in (op.record.tags or "").split():
        raise RuntimeError(
            f"vmap: {op.name}: the size of its result depends on the data, so it may differ from sample to sample. "
            "Compute it outside of vmap, or use a form with a mask of fixed size."
        )
    if op.record.view:
        raise NotImplementedError(
            f"vmap: {op.name} is a view and has no rule for batches, without which what is written to it would be lost: "
            "give its record a `batch=`"
        )
    if not size:
        raise RuntimeError(f"vmap: {op.name} has no rule for batches, and there is no sample to learn its result from")
    counts[op.name] = counts.get(op.name, 0) + 1
    call = operation(op)
    for k in range(size):
        rows.append(call(*[_sample(level, a, k) for a in args]))
    return _stacked(op, rows)


cdef object _sample(level, a, Py_ssize_t k):
    if type(a) is Carried and (<Carried>a).level is level:
        return (<Carried>a).value[k]
    if type(a) in (list, tuple):
        for x in a:
            if isinstance(x, Tensor):
                return type(a)([_sample(level, x, k) for x in a])
    return a


cdef object _stacked(Op op, list rows):
    first = rows[0]
    if isinstance(first, Tensor):
        return functions["stack"](rows)
    counts_of_rows = sorted({len(r) for r in rows})
    if len(counts_of_rows) > 1:
        raise RuntimeError(f"vmap: {op.name} gives {counts_of_rows[0]} results for one sample and {counts_of_rows[-1]} for another, "
                           "which cannot be stacked: give as many for each, or call it outside of vmap")
    parts = [_stacked(op, [r[i] for r in rows]) for i in range(len(first))]
    return parts if type(first) is list else tuple.__new__(type(first), parts)
