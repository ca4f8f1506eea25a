"""Ops that draw random numbers under vmap: an error, other numbers for each sample, or the same for all."""

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.registry import functions

from .carrying import Shared, aligned

# of these the numbers drawn hang on the elements of an operand, and so cannot be the same for all samples
_BY_VALUE = frozenset(
    f"aten::{name}"
    for name in (
        "bernoulli",
        "bernoulli.Tensor",
        "multinomial",
        "normal.Tensor_float",
        "normal.float_Tensor",
        "normal.Tensor_Tensor",
    )
)


def draws(op):
    """Whether an op draws numbers."""
    return any(a.type == "Generator" for a in op.schema.args)


def check(level, op, args):
    """Raise where random ops are an error."""
    if level.randomness == "error":
        raise RuntimeError(
            f"vmap: called random operation while in randomness error mode ({op.name}). Please either use the 'same' "
            "or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if level.randomness == "same" and op.name in _BY_VALUE and level.any_owned(_deciding(op, args)):
        raise RuntimeError(
            f"Vmap does not currently support same randomness with a batched tensor input ({op.name}): the numbers "
            "hang on "
            "the elements, which differ from sample to sample. Use randomness='different'"
        )


def _deciding(op, args):
    """The operands whose elements decide what is drawn: of bernoulli_(p) only p, what is written over gives a shape."""
    return args[1:] if op.name == "aten::bernoulli.Tensor" else args


def run(level, op, args):
    """The rule of an op that draws."""
    check(level, op, args)
    if level.randomness == "different":
        return _different(level, op, args)
    if not level.any_owned(args):
        return NotImplemented  # drawn once, as outside
    if op.name == "aten::_dropout_step":
        return _same_dropout(level, *args)
    return Shared(operation(op)(*[a.value[0] if level.owns(a) else a for a in args]))


def check_write(level, op, target, args):
    """An op that draws in place; False where it may go on as outside."""
    check(level, op, args)
    if level.owns(target):
        return True
    if level.randomness == "same" and not level.any_owned(args):
        return False
    raise RuntimeError(
        f"vmap: Cannot ask for different inplace randomness on an unbatched tensor ({op.name}_). This will appear "
        "like same "
        "randomness. If this is necessary for your usage, please use tensors that are batched, such as new_empty() "
        "of one"
    )


def _different(level, op, args):
    call, names = operation(op), [a.name for a in op.schema.args]
    if op.name == "aten::randperm":
        return functions["stack"]([call(*args) for _ in range(level.size)])
    # one without dimensions may stand for a number, as the std of normal(mean, std)
    wanted = (a.type.startswith("Tensor") for a in op.schema.args)
    tensors = [i for i, (a, fits) in enumerate(zip(args, wanted)) if fits and isinstance(a, Tensor)]
    row = list(args)
    if not tensors:
        at = names.index("size")
        row[at] = (level.size, *args[at])
        return call(*row)
    rank = max(args[i].dim() for i in tensors)
    for i in tensors:
        row[i] = aligned(level.whole(args[i]), rank + 1)
    # an op that takes a batch dimension of its own, or counts channels
    if (op.name == "aten::multinomial" and rank == 2) or (op.name == "aten::_dropout_noise" and args[2]):
        whole = row[0]
        found = call(whole.flatten(0, 1), *row[1:])
        return found.unflatten(0, (level.size, whole.shape[1]))
    return call(*row)


def _same_dropout(level, tensor, keep, generator):
    """One draw for all samples, by which each of them is multiplied."""
    whole = level.whole(tensor)
    kept = functions["_fused._dropout_step"](whole[0].detach(), keep, generator=generator)[1]
    return functions["_fused._dropout_step_backward"](whole, kept.expand(whole.shape), keep), Shared(kept)
