"""The fallback of vmap: an op without a rule runs once for each sample, and the results are stacked."""

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.registry import functions

counts = {}  # name of an op -> how often it ran sample by sample


def run(level, op, args):
    """The results of an op for each sample, stacked."""
    if "data_dependent" in (op.record.tags or "").split():
        raise RuntimeError(
            f"vmap: {op.name}: the size of its result depends on the data, so it may differ from sample to sample. "
            "Compute it outside of vmap, or use a form with a mask of fixed size."
        )
    if op.record.view:
        raise NotImplementedError(
            f"vmap: {op.name} is a view and has no rule for batches, without which what is written to it would be "
            "lost: "
            "give its record a `batch=`"
        )
    if not level.size:
        raise RuntimeError(f"vmap: {op.name} has no rule for batches, and there is no sample to learn its result from")
    counts[op.name] = counts.get(op.name, 0) + 1
    call = operation(op)
    rows = [call(*[_sample(level, a, k) for a in args]) for k in range(level.size)]
    return _stacked(rows)


def _sample(level, a, k):
    if level.owns(a):
        return a.value[k]
    if type(a) in (list, tuple) and any(isinstance(x, Tensor) for x in a):
        return type(a)([_sample(level, x, k) for x in a])
    return a


def _stacked(rows):
    first = rows[0]
    if isinstance(first, Tensor):
        return functions["stack"](rows)
    parts = [_stacked([r[i] for r in rows]) for i in range(len(first))]
    return parts if type(first) is list else tuple.__new__(type(first), parts)
