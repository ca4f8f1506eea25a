"""A toy of grad: a level with a history of its own, which stands above or below any other.

The rules are those of the op records, so what they compute is seen by the levels below, an outer `grad` among them.

    >>> import tinygrad_ext as tg
    >>> grad(lambda x: (x * x).sin().sum())(tg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.0806])
    >>> grad(grad(lambda x: (x * x * x).sum()))(tg.tensor(2.0))     # 6 x
    tensor(12.)
"""

from tinygrad_ext import Tensor, ones, ops
from tinygrad_ext.overrides import Level


class Step:
    """One value of the program: the tensor below the level, and the rules that lead to its operands."""

    def __init__(self, tensor, operands=()):
        self.tensor, self.operands, self.grad = tensor, operands, None


class Grad(Level):
    """Carries the steps of one differentiation, in the order in which they were made."""

    def __init__(self):
        self.steps = []

    def wrap(self, tensor, operands=()):
        self.steps.append(Step(tensor, operands))
        return self.carry(self.steps[-1], tensor.shape, tensor.dtype)

    def owns(self, value):
        return getattr(value, "level", None) is self

    def process(self, operation, args):
        if operation.composite:
            return NotImplemented
        inner = [a.value.tensor if self.owns(a) else a for a in args]
        result = operation(*inner)
        known = {argument.name: value for argument, value in zip(operation.schema.args, inner)}
        operands = [
            (args[i].value, operation.record.grad[argument.name], {**known, "result": result})
            for i, argument in enumerate(operation.schema.args)
            if self.owns(args[i])
        ]
        return self.wrap(result, operands)

    def backward(self, last):
        """Gradients of all steps, from the last one back."""
        last.grad = ones(last.tensor.shape, dtype=last.tensor.dtype)
        for step in reversed(self.steps):
            for operand, rule, known in step.operands if step.grad is not None else ():
                got = apply_rule(rule, {**known, "grad": step.grad}).sum_to_size(operand.tensor.shape)
                operand.grad = got if operand.grad is None else operand.grad + got


def apply_rule(rule, known):
    """A rule of a record: a function of named values, the text of a call or of a product with a number, or "grad"."""
    shapes = {f"{k}_shape": v.shape for k, v in known.items() if isinstance(v, Tensor)}
    known = {**known, **shapes}
    if rule == "grad":
        return known["grad"]
    if isinstance(rule, str) and " * " in rule:
        first, second = rule.split(" * ")
        return known[first] * known[second]
    if isinstance(rule, str):
        name, _, rest = rule.rstrip(")").partition("(")
        return getattr(ops.aten, name)(*(known[word.strip()] for word in rest.split(",")))
    return rule(*(known[name] for name in rule.__code__.co_varnames[: rule.__code__.co_argcount]))


def grad(function):
    """The derivative of a scalar function by its first argument."""

    def run(x, *others):
        with Grad() as level:
            start = level.wrap(x)
            out = function(start, *others)
        level.backward(out.value)
        return start.value.grad

    return run
