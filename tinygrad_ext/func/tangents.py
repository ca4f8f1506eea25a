"""The tangents of an op's results: what its record says about forward mode.

    None          pointwise ops: what grad says, of the tangents; views are linear; composites are opened; else as
                  "transposed"
    "linear"      the op itself, of the tangents
    "each"        linear in each tensor argument: the sum over them, the others held
    "symmetric"   the derivative is its own transpose: what grad says, of the tangents
    "reduce"      each element goes into one result, and what grad says of ones is its factor
    "transposed"  the transpose of what grad says, by another derivative; counted
    a function    whose parameters name what it needs: an argument, its <argument>_tangent (None for zeros), `result`,
                  or a named result

A rule gets the operation, the primals and their tangents, and returns the result and the tangents.
"""

import inspect

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.library.state import states
from tinygrad_ext.registry import functions
from tinygrad_ext.registry.derivatives import rules_of

from .pairing import Asks, ByGradient
from .transposed import targets_of, transposed, zeros

_OPENED = object()  # in the place of a rule: the op is a composite, and what it is written in has rules


def functional(op):
    """An op as a function of all its arguments, under the levels that are on."""
    return operation(op)


def kind_of(record):
    """How an op's tangents are found: "rule", "pointwise", "composite", "none", or a word of the record's."""
    if callable(record.jvp):
        return "rule"
    if record.jvp is not None:
        return record.jvp
    if not any(r not in ("zero", "none") for r in (record.grad or {}).values()):
        return "none" if record.compose is None else "composite"
    if "random" in (record.tags or ""):
        return "none" if record.compose is None else "composite"
    if record.view:
        return "linear"
    if record.scalar is not None:
        return "pointwise"
    return "transposed" if record.compose is None else "composite"


def differentiable(op):
    return bool(rules_of(op))


def rule_of(op):
    """The rule of an op; None for a composite that is opened."""
    found = op.tangent_rule
    if found is None:
        kind = kind_of(op.record)
        made = _made_here(op) if op.name in states else _OPENED if kind == "composite" else _MAKERS[kind](op)
        found = op.tangent_rule = made
    return None if found is _OPENED or (op.name in states and operation(op).composite) else found


def _made_here(op):
    """An op that a program has made or changed: what is registered for it may change again."""

    def rule(call, primals, tangents):
        from .pushed import custom  # lazy: few programs need it

        return custom(op, call, primals, tangents)

    return rule


def cannot_cast(source, target):
    return source.is_complex and not target.is_complex


# ---- by kind -------------------------------------------------------------------------------------------------------


def _none(op):
    return lambda call, primals, tangents: (call(*primals), None)


def ones(tensor):
    return functions["ones_like"](tensor)


def linear(op):
    """The op itself, of the tangents; missing ones are zeros."""
    targets = targets_of(op)

    def slopes(primal, tangent):
        if type(primal) in (list, tuple):
            rows = [None] * len(primal) if tangent is None else tangent
            return type(primal)([slopes(p, t) for p, t in zip(primal, rows)])
        return (
            zeros(primal) if tangent is None and isinstance(primal, Tensor) else primal if tangent is None else tangent
        )

    def rule(call, primals, tangents):
        result = call(*primals)
        row = list(primals)
        for i in targets:
            row[i] = slopes(primals[i], tangents[i])
        return result, call(*row)

    return rule


def _each(op):
    """Linear in each argument: the sum over those that have a tangent. A bias is added once."""
    targets = targets_of(op)
    bias = next((i for i in targets if op.schema.args[i].name == "bias"), None)

    def rule(call, primals, tangents):
        total = None
        added = None if bias is None else tangents[bias]
        for i in targets:
            tangent = tangents[i]
            if i == bias or (tangent is None and (i != targets[0] or added is None)):
                continue
            row = list(primals)
            row[i] = zeros(primals[i]) if tangent is None else tangent
            if bias is not None:
                row[bias], added = added, None
            part = call(*row)
            total = part if total is None else total + part
        return call(*primals), total

    return rule


def _reduce(op):
    """Each element goes into one result: the gradient of ones is its factor, for all results at once."""
    (found,) = rules_of(op)
    (target,) = found.targets
    places = {a.name: i for i, a in enumerate(op.schema.args)}
    asks, other = Asks(op, found), transposed(op)
    dim, keepdim = places.get("dim"), places.get("keepdim")

    def summed(primals, product):
        if dim is None:
            return product.sum()
        return functions["sum"](product, primals[dim], keepdim is not None and primals[keepdim])

    def rule(call, primals, tangents):
        if primals[target].is_complex():
            return other(call, primals, tangents)
        result = call(*primals)
        results = (result,) if isinstance(result, Tensor) else result
        tangent = tangents[target].to(results[0].dtype)
        slopes = []
        for i in range(len(results)):
            seeds = [ones(r) if i == j else None for j, r in enumerate(results)]
            seed = seeds[0] if isinstance(result, Tensor) else tuple(seeds)
            factor = found.function(*asks.of(primals, result, seed, None))
            slopes.append(summed(primals, factor * tangent))
        return result, slopes[0] if isinstance(result, Tensor) else tuple(slopes)

    return rule


def _written(op):
    """A function of the record."""
    function = op.record.jvp
    code = inspect.unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount]
    places = {a.name: i for i, a in enumerate(op.schema.args)}
    returns = {r.name: i for i, r in enumerate(op.schema.returns) if r.name}

    def getter(name):
        if name in places:
            i = places[name]
            return lambda primals, tangents, result: primals[i]
        if name.endswith("_tangent") and name[:-8] in places:
            i = places[name[:-8]]
            return lambda primals, tangents, result: tangents[i]
        if name == "result":
            return lambda primals, tangents, result: result
        if name in returns:
            i = returns[name]
            return lambda primals, tangents, result: result[i]
        raise TypeError(
            f"{op.name}: its rule for forward mode asks for '{name}'; it may ask for {', '.join(places)}, their "
            "<argument>_tangent, and result"
        )

    getters = [getter(n) for n in names]

    def rule(call, primals, tangents):
        result = call(*primals)
        return result, function(*[g(primals, tangents, result) for g in getters])

    return rule


def _pointwise(op):
    """The gradient rules, applied to the tangents: element by element there is nothing to transpose."""
    tensors = [i for i, a in enumerate(op.schema.args) if a.type == "Tensor"]
    plan = [
        (rule.function, Asks(op, rule), rule.targets.index(target) if len(rule.targets) > 1 else -1, target)
        for rule in rules_of(op)
        for target in rule.targets
    ]
    return ByGradient(plan, tensors, transposed(op))


_MAKERS = {
    "none": _none,
    "linear": linear,
    "each": _each,
    "rule": _written,
    "pointwise": _pointwise,
    "symmetric": _pointwise,
    "reduce": _reduce,
    "transposed": transposed,
}


# ---- what is no op -------------------------------------------------------------------------------------------------


def host(level, operation, args):
    """Functions, and steps of the host such as an optimizer's."""
    if not level.found(args, []):
        return NotImplemented
    if operation.name.startswith("autograd::"):
        return operation(*level.stripped(args))
    if operation.name.startswith("function::"):
        from .pushed import function  # lazy: few programs need it

        return function(level, operation, args)
    raise NotImplementedError(
        f"{operation.name}: not supported in forward mode; compute it outside of the differentiated function"
    )
