"""The derivative rules of an op as functions, for whoever applies them itself: graphs, and forward mode."""

from collections import namedtuple

from . import compiler, op_registrar

# targets: positions of the arguments whose gradients it gives; function: None passes the gradient on; names: what it
# asks for
Rule = namedtuple("Rule", "targets function names")
_rules = {}


def turned(function, names):
    """A rule of an analytic function: of complex numbers, the conjugate of what it makes of the conjugate of grad."""
    at = names.index("grad")

    def rule(*args):
        if not args[at].dtype.is_complex:
            return function(*args)
        found = function(*args[:at], args[at].conj_physical(), *args[at + 1 :])
        if isinstance(found, (tuple, list)):  # of a joint rule
            return tuple(map(_conjugate, found))
        return _conjugate(found)

    return rule


def _conjugate(grad):
    return grad if grad is None or not grad.dtype.is_complex else grad.conj_physical()


def rules_of(op):
    """The derivative rules of an op, as its record has them."""
    found = _rules.get(op.name)
    if found is None or found[0] is not op:
        places = {a.name: i for i, a in enumerate(op.schema.args)}
        rules = []
        for names, rule in (op.record.grad or {}).items():
            targets = tuple(places[n.strip()] for n in names.split(","))
            if rule == "grad":
                rules.append(Rule(targets, None, ()))
            elif rule not in ("zero", "none"):
                function, asks = compiler.rule_function(op.record, rule, op_registrar.find_function)
                rules.append(Rule(targets, turned(function, asks) if op.record.holomorphic else function, asks))
        found = _rules[op.name] = op, tuple(rules)
    return found[1]
