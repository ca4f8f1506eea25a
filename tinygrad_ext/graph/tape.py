"""What the tape of a capture has of an op's node."""

from collections import namedtuple

from tinygrad_ext.core.grad.custom import custom_of
from tinygrad_ext.registry import derivatives
from tinygrad_ext.registry.derivatives import Rule

from .ir import values_in

# of composites that a capture leaves whole: opened, they would ask for sizes
WHOLE = {
    "aten::sum_to_size": (Rule((0,), lambda grad, self_shape: grad.expand(self_shape), ("grad", "self_shape")),),
}


def rules_of(op):
    """The derivative rules of an op, as its record has them."""
    return WHOLE.get(op.name) or derivatives.rules_of(op)


def _mask(returns, rules):
    """Bits of the results whose gradients some rule reads; 0: of all."""
    mask = 0
    for rule in rules:
        for name in rule.names if rule.function is not None else ("grad",):
            if name in ("grads", "arrived"):
                return 0
            if name == "grad":
                mask |= 1
            elif name.startswith("grad_") and name[5:] in returns:
                mask |= 1 << returns[name[5:]]
    return mask


class Told:
    """What an op's record says of its derivative.

    Attributes:
        rules, custom: see rules_of and custom_of. targets: positions of the arguments that have a gradient.
        places, returns: position of each argument, and of each result that has a name.
        reads: {number of a rule: what `reads_of` says}, as far as somebody asked.
        mask: bits of the results whose gradients some rule reads; 0: of all. pointwise: it is one by one.
    """

    __slots__ = ("custom", "mask", "places", "pointwise", "reads", "returns", "rules", "targets")

    def __init__(self, op):
        self.rules, self.custom, self.pointwise = rules_of(op), custom_of(op), op.record.scalar is not None
        self.targets = sorted({t for rule in self.rules for t in rule.targets})
        self.places = {a.name: i for i, a in enumerate(op.schema.args)}
        self.returns = {r.name: i for i, r in enumerate(op.schema.returns) if r.name}
        self.mask, self.reads = _mask(self.returns, self.rules), {}


def reads_of(told, rule):
    """What each parameter of a rule is made of: ("argument", its position), ("result", number), ("grad", number of the
    result that it belongs to), ("grads", 0) for all, ("needs", 0)."""
    return [_read(told, name) for name in rule.names]


def _read(told, name):
    if name in ("grads", "arrived"):
        return "grads", 0
    if name == "needs":
        return "needs", 0
    if name in told.places:
        return "argument", told.places[name]
    if name == "result":
        return "result", 0
    if name in told.returns:
        return "result", told.returns[name]
    if name == "grad":
        return "grad", 0
    if name.startswith("grad_") and name[5:] in told.returns:
        return "grad", told.returns[name[5:]]
    return "argument", told.places[name.rpartition("_")[0]]


# node, op: what was called; made: the Values of its results, in lists one each; told: a Told
class Entry(namedtuple("Entry", "node op made told")):
    """A node on the tape."""

    __slots__ = ()

    @property
    def rules(self):
        return self.told.rules

    def reads(self, needs):
        """Values that its rules read for gradients of `needs`, their sizes aside."""
        places, returns = self.told.places, self.told.returns
        wanted = [
            r for r in self.rules if any(id(v) in needs for t in r.targets for v in values_in((self.node.args[t],)))
        ]
        names = {name for rule in wanted for name in rule.names}
        yield from values_in([self.node.args[places[n]] for n in names if n in places])
        yield from [self.made[returns[n]] for n in names if n in returns]
        yield from self.made[:1] if "result" in names else ()
