"""The derivative rules of an op as functions, for whoever applies them itself: graphs, and forward mode."""

from collections import namedtuple

from . import compiler, op_registrar

# targets: positions of the arguments whose gradients it gives; function: None passes the gradient on; names: what it
# asks for
Rule = namedtuple("Rule", "targets function names")
_rules = {}


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
                rules.append(Rule(targets, *compiler.rule_function(op.record, rule, op_registrar.find_function)))
        found = _rules[op.name] = op, tuple(rules)
    return found[1]
