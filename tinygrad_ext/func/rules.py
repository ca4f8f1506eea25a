"""How an op is carried out for a whole batch at once: what the word or the function in a record's `batch` means.

A rule gets the level, the op and its arguments as the program gave them, and returns tensors with the batch in front.
No rule: the op is a composite, and what it is written in has rules.

    None        pointwise ops: shapes are aligned behind the batch, and broadcasting does the rest
    "leading"   further leading dimensions are taken as they are
    "dims"      arguments that name dimensions count from the second one on
    a function  of the level and the arguments
"""

import functools

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.gradients import retain
from tinygrad_ext.library.state import VMAP, states

from .carrying import OPENED, ByDims, Pointwise, Tried
from .draws import draws
from .draws import run as drawn
from .looped import run as sample_by_sample

# arguments that name dimensions of the operand
DIMS = frozenset(["dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "source", "destination", "dimension"])


def functional(op):
    """An op as a function of all its arguments, under the levels that are on."""
    return operation(op)


def rule_of(op):
    """The rule of an op; OPENED for a composite that is."""
    found = op.batch_rule
    if found is None:
        found = op.batch_rule = _make(op) or OPENED
    return found


def kind_of(op):
    """How an op goes through a batch: "pointwise", "leading", "dims", "rule", "composite" or "loop"; "registered" for a
    custom op with register_vmap, "shared" for one that takes no tensor, "read" for one that gives none.
    """
    record = op.record
    if callable(record.batch):
        return "rule"
    if record.batch is not None:
        return record.batch
    if record.scalar is not None:
        return "pointwise"
    if record.compose is not None:
        return "composite"
    if "Generator?" in record.schema:
        return "rule"
    if op.name in states and states[op.name].get(VMAP) is not None:
        return "registered"
    if not any(a.type == "Tensor" for a in op.schema.args):
        return "shared"
    return "loop" if any(r.type == "Tensor" for r in op.schema.returns) else "read"


def _make(op):
    kind = kind_of(op)
    if kind == "composite":
        return None
    if draws(op):
        return drawn
    if kind == "rule":
        written = op.record.batch
        return Tried(lambda level, op, args: written(level, *args))
    if kind in ("loop", "registered") and op.name in states:
        return _custom
    known = {"pointwise": _pointwise, "leading": lambda op: Tried(_leading), "dims": _with_dims}
    return known[kind](op) if kind in known else sample_by_sample


def _custom(level, op, args):
    """A custom op: by its own rule, else sample by sample."""
    rule = states[op.name].get(VMAP)
    if rule is None:
        return sample_by_sample(level, op, args)
    from .functions import by_rule  # lazy: few programs need it

    schema = op.schema.args
    named = {a.name: value for a, value in zip(schema, args) if a.kwarg_only}
    given = [value for a, value in zip(schema, args) if not a.kwarg_only]
    return by_rule(level, op.name, functools.partial(rule, **named) if named else rule, given)


# ---- pointwise -----------------------------------------------------------------------------------------------------


def _pointwise(op):
    fixed = op.record.inputs or {}
    tensors = tuple(i for i, a in enumerate(op.schema.args) if a.type == "Tensor")
    promoted = tuple(i for i in tensors if op.schema.args[i].name not in fixed)
    return Pointwise(operation(op), tensors, promoted, functools.partial(_promote, promoted))


def _promote(promoted, level, args, row):
    """Let tensors that the program sees without dimensions count as such when dtypes are promoted."""
    dims = any(isinstance(args[i], Tensor) and args[i].dim() > 0 for i in promoted)
    for i in promoted:
        a = args[i]
        if not isinstance(a, Tensor) or a.dim() > 0:
            continue
        if not dims and not level.owns(a):
            row[i] = row[i].reshape(1)  # of the same rank as the others, batched or not
        elif dims and level.owns(a):
            others = [row[k].new_empty(1) for k in promoted if isinstance(args[k], Tensor) and args[k].dim() > 0]
            kind = _result_type(row[i].new_empty(()), others)
            row[i] = row[i].to(kind)


def _result_type(zero, others):
    import tinygrad_ext as tg  # lazy: the package's root is loaded by then

    for other in others:
        kind = tg.result_type(zero, other)
        zero = zero.new_empty((), dtype=kind)
    return zero.dtype


# ---- leading dimensions, and dimensions by number ------------------------------------------------------------------


def _leading(level, op, args):
    schema = op.schema.args  # (a tensor without dimensions in the place of a number is one)
    return operation(op)(*[_whole(level, a) if s.type == "Tensor" else a for a, s in zip(args, schema)])


def _whole(level, a):
    if isinstance(a, Tensor):
        return level.whole(a)
    if type(a) in (list, tuple) and any(isinstance(x, Tensor) for x in a):
        return type(a)([_whole(level, x) for x in a])
    return a


def _with_dims(op):
    args = op.schema.args
    dims = [i for i, a in enumerate(args) if a.name in DIMS and a.type == "int"]
    lists = frozenset(i for i in dims if args[i].is_list)
    reduced = frozenset(i for i in lists if args[i].size == 1)  # int[1]: no dimensions stand for all
    tensors = [i for i, a in enumerate(args) if a.type == "Tensor"]
    return Tried(ByDims(operation(op), tensors, dims, lists, reduced, _of_scalars))


def _of_scalars(run, row, tensors):
    """Of a batch of tensors without dimensions: each gets one for the op, which is taken off again."""
    for i in tensors:
        if isinstance(row[i], Tensor):
            row[i] = row[i].unsqueeze(1)
        elif row[i] is not None:
            row[i] = [t.unsqueeze(1) for t in row[i]]
    for i, d in enumerate(row):
        if d == []:
            row[i] = [1]
    return _map(lambda t: t.squeeze(1) if t.dim() > 1 else t, run(*row))


def _map(function, result):
    if isinstance(result, Tensor):
        return function(result)
    parts = [_map(function, r) for r in result]
    return parts if type(result) is list else tuple.__new__(type(result), parts)


# ---- what is no op -------------------------------------------------------------------------------------------------


def host(level, operation, args):
    """Functions, and steps of the host such as an optimizer's."""
    if operation.name.startswith("function::"):
        from .functions import batched  # lazy: few programs need it

        return batched(level, operation, args)
    if operation.name == "autograd::retain_grad":
        return retain(*args)  # a batch, which nobody can use afterwards, as in PyTorch
    raise RuntimeError(
        f"vmap: {operation.name} inside vmap would change what all samples share. Compute new values and return them, "
        "or do it outside of vmap."
    )
