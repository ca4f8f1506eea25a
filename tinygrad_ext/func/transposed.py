"""Tangents by two backward passes, for ops without a rule for forward mode."""

from tinygrad_ext.autograd import grad as gradients_of
from tinygrad_ext.autograd.modes import recording
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.library.state import states
from tinygrad_ext.registry import functions

from .differentiation import Differentiation
from .nesting import bottoms, severed

counts = {}  # name of an op -> how often it had no rule for forward mode


def targets_of(op):
    """Positions of the arguments that have derivatives."""
    places = {a.name: i for i, a in enumerate(op.schema.args)}
    return sorted({places[n.strip()] for names in op.record.grad or () for n in names.split(",")})


def zeros(tensor):
    return functions["zeros_like"](tensor)


def transposed(op):
    """What is linear in a vector, the product with the transposed Jacobian, differentiated by that vector."""
    targets = targets_of(op) or [i for i, a in enumerate(op.schema.args) if a.type == "Tensor"]

    def rule(call, primals, tangents):
        counts[op.name] = counts.get(op.name, 0) + 1
        row, task, inputs, slopes = list(primals), Differentiation(), [], []
        tracked = task.tracked and any(b.requires_grad for v in _flat([primals, tangents]) for b in bottoms(v))
        with recording():
            for i in targets:
                row[i] = _fresh(primals[i], tangents[i], task, inputs, slopes)
            results = call(*row)
            one = isinstance(results, Tensor)
            found = [_product(op, r, inputs, slopes, tracked) for r in ((results,) if one else results)]
        if not tracked:
            results = _map(severed, results)
        return results, found[0] if one else found

    return rule


def _fresh(primal, tangent, task, inputs, slopes):
    if type(primal) in (list, tuple):
        rows = [None] * len(primal) if tangent is None else tangent
        return type(primal)([_fresh(p, t, task, inputs, slopes) for p, t in zip(primal, rows)])
    if tangent is None:
        return primal
    inputs.append(task.fresh(primal))
    slopes.append(tangent)
    return inputs[-1]


def _product(op, result, inputs, slopes, tracked):
    """The derivative of one result along the tangents; None for zeros."""
    if not isinstance(result, Tensor) or not result.requires_grad:
        return None
    seed = zeros(result).requires_grad_()
    pulled = gradients_of([result], inputs, [seed], create_graph=True, allow_unused=True)
    if op.name in states and any(g is not None and not g.requires_grad for g in pulled):
        raise RuntimeError(
            f"{op.name}: its backward cannot be differentiated, so forward mode does not follow from it: write it in "
            "ops of tensors, or give the op a rule by register_jvp"
        )
    chosen = [(g, t) for g, t in zip(pulled, slopes) if g is not None and g.requires_grad]
    if not chosen:
        return None
    roots, weights = zip(*chosen)
    return gradients_of(roots, [seed], weights, retain_graph=True, create_graph=tracked, allow_unused=True)[0]


def _flat(values):
    for v in values:
        if isinstance(v, Tensor):
            yield v
        elif type(v) in (list, tuple):
            yield from _flat(v)


def _map(function, result):
    if isinstance(result, Tensor):
        return function(result)
    if type(result) in (list, tuple) or isinstance(result, tuple):
        parts = [_map(function, r) for r in result]
        return parts if type(result) is list else tuple.__new__(type(result), parts)
    return result
