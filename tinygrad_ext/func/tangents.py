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

from tinygrad_ext.autograd import grad as gradients_of
from tinygrad_ext.autograd.modes import enable_grad
from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.registry import functions
from tinygrad_ext.registry.derivatives import rules_of

from .nesting import bottoms, severed
from .reverse import Pass

counts = {}  # name of an op -> how often it had no rule for forward mode
_rules = {}  # id of an op -> (op, rule)


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
    found = _rules.get(id(op))
    if found is None or found[0] is not op:
        kind = kind_of(op.record)
        found = _rules[id(op)] = op, None if kind == "composite" else _MAKERS[kind](op)
    return found[1]


def cannot_cast(source, target):
    return source.is_complex and not target.is_complex


# ---- by kind -------------------------------------------------------------------------------------------------------


def _none(op):
    return lambda call, primals, tangents: (call(*primals), None)


def _targets(op):
    """Positions of the arguments that have derivatives."""
    places = {a.name: i for i, a in enumerate(op.schema.args)}
    return sorted({places[n.strip()] for names in op.record.grad for n in names.split(",")})


def zeros(tensor):
    return functions["zeros_like"](tensor)


def ones(tensor):
    return functions["ones_like"](tensor)


def linear(op):
    """The op itself, of the tangents; missing ones are zeros."""
    targets = _targets(op)

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
    targets = _targets(op)
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
    asks, other = _asks(op, found), _transposed(op)
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
            factor = found.function(*[ask(primals, result, seed, None) for ask in asks])
            slopes.append(summed(primals, factor * tangent))
        return result, slopes[0] if isinstance(result, Tensor) else tuple(slopes)

    return rule


def _written(op):
    """A function of the record."""
    function = op.record.jvp
    code = function.__code__
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
    plan = [(rule, target) for rule in rules_of(op) for target in rule.targets]
    several = {id(rule) for rule in rules_of(op) if len(rule.targets) > 1}
    tensors = [i for i, a in enumerate(op.schema.args) if a.type == "Tensor"]
    asks = {id(rule): _asks(op, rule) for rule in rules_of(op)}
    other = _transposed(op)

    def rule(call, primals, tangents):
        result = call(*primals)
        if not result.is_complex() and any(isinstance(primals[i], Tensor) and primals[i].is_complex() for i in tensors):
            return other(call, primals, tangents)  # no function of complex numbers in the strict sense
        total = None
        for rule, target in plan:
            tangent = tangents[target]
            if tangent is None:
                continue
            if tuple(tangent.shape) != tuple(result.shape):
                tangent = tangent.expand(result.shape)
            if tangent.dtype != result.dtype:
                tangent = tangent.to(result.dtype)
            if rule.function is not None:
                turned = tangent.is_complex()
                needs = tuple([i == target for i in tensors])
                seed = tangent.conj() if turned else tangent
                part = rule.function(*[ask(primals, result, seed, needs) for ask in asks[id(rule)]])
                if id(rule) in several:
                    part = part[rule.targets.index(target)]
                tangent = part.conj() if turned and part is not None else part
            if tangent is not None:
                total = tangent if total is None else total + tangent
        return result, total

    return rule


def _asks(op, rule):
    """What a gradient rule asks for, as functions of the primals, the result, and what is given for the gradient."""
    places = {a.name: i for i, a in enumerate(op.schema.args)}

    def ask(name):
        if name in ("grad", "grads"):
            return lambda primals, result, seed, needs: seed
        if name == "needs":
            return lambda primals, result, seed, needs: needs
        if name == "result":
            return lambda primals, result, seed, needs: result if isinstance(result, Tensor) else result[0]
        if name in places:
            i = places[name]
            return lambda primals, result, seed, needs: primals[i]
        argument, _, what = name.rpartition("_")
        i = places[argument]
        if what == "shape":
            return lambda primals, result, seed, needs: getattr(primals[i], "shape", ())
        if what == "geometry":
            return lambda primals, result, seed, needs: _geometry(primals[i])
        return lambda primals, result, seed, needs: getattr(primals[i], what, None)

    return [ask(n) for n in rule.names]


def _geometry(tensor):
    return tensor.shape, tensor.stride(), tensor.storage_offset()


# ---- without a rule ------------------------------------------------------------------------------------------------


def _transposed(op):
    """What is linear in a vector, the product with the transposed Jacobian, differentiated by that vector."""
    targets = _targets(op)

    def rule(call, primals, tangents):
        counts[op.name] = counts.get(op.name, 0) + 1
        row, task, inputs, slopes = list(primals), Pass(), [], []
        tracked = task.tracked and any(b.requires_grad for v in _flat([primals, tangents]) for b in bottoms(v))
        with enable_grad():
            for i in targets:
                row[i] = _fresh(primals[i], tangents[i], task, inputs, slopes)
            results = call(*row)
            one = isinstance(results, Tensor)
            found = [_product(r, inputs, slopes, tracked) for r in ((results,) if one else results)]
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


def _product(result, inputs, slopes, tracked):
    """The derivative of one result along the tangents; None for zeros."""
    if not isinstance(result, Tensor) or not result.requires_grad:
        return None
    seed = zeros(result).requires_grad_()
    pulled = gradients_of([result], inputs, [seed], create_graph=True, allow_unused=True)
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


_MAKERS = {
    "none": _none,
    "linear": linear,
    "each": _each,
    "rule": _written,
    "pointwise": _pointwise,
    "symmetric": _pointwise,
    "reduce": _reduce,
    "transposed": _transposed,
}


# ---- what is no op -------------------------------------------------------------------------------------------------


def host(level, operation, args):
    """Functions, and steps of the host such as an optimizer's."""
    if not level.found(args, []):
        return NotImplemented
    if operation.name.startswith("autograd::"):
        return operation(*level.stripped(args))
    raise NotImplementedError(
        f"{operation.name}: not supported in forward mode by this release; compute it outside, or write it in ops"
    )
