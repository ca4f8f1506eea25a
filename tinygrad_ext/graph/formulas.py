"""Ops whose derivative is a Python function, `register_autograd`: it runs under the capture, so what it calls is in the
graph."""

from tinygrad_ext.core.data.tensor import Tensor

from .aliases import Root, Traced
from .ir import Value


class Context:
    """`ctx` of such a function: keeps what it is given."""

    def __init__(self, needs):
        self.needs_input_grad, self.saved_tensors = needs, ()

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def set_materialize_grads(self, value):
        """All gradients are there in a captured backward pass."""


class FormulaEntry:
    """What the tape has of a call. returns: for each result a Value, or a tuple of them."""

    linear = False

    def __init__(self, op, node, made, backward, context, returns):
        self.op, self.node, self.made = op, node, made
        self.backward, self.context, self.returns = backward, context, returns

    def reads(self, needs):
        """Values that its backward may read."""
        return [*self.node.values(), *self.made]

    def spread(self, passed, arrived):
        grads = {id(v): g for v, g in zip(self.made, arrived)}

        def grad_of(v):
            if isinstance(v, tuple):
                return [grad_of(x) for x in v]
            found = grads.get(id(v))
            return passed.zeros(v) if found is None else found

        found = passed.capture.resume(self.backward, self.context, *map(grad_of, self.returns))
        found = found if isinstance(found, (tuple, list)) and not _is_one(self.op, found) else (found,)
        operands = [a for a, declared in zip(self.node.args, self.op.schema.args) if not declared.kwarg_only]
        if len(found) != len(operands):
            raise RuntimeError(
                f"{self.op.name}: backward returned an incorrect number of gradients (expected {len(operands)}, "
                f"got {len(found)})"
            )
        for operand, grad in zip(operands, found):
            self.give(passed, operand, grad)

    def give(self, passed, operand, grad):
        if isinstance(operand, tuple) and grad is not None:
            for value, part in zip(operand, grad):
                self.give(passed, value, part)
        elif isinstance(operand, Value) and isinstance(operand.hint, Tensor):
            passed.give(operand, grad)


def _is_one(op, found):
    """Whether a list is the gradient of the only argument, a list of tensors."""
    positional = [a for a in op.schema.args if not a.kwarg_only]
    return len(positional) == 1 and positional[0].is_list and isinstance(found, list)


def note(capture, op, node, made, args, formula):
    """Put a call on the tape."""
    backward, setup, keywords = formula
    if any(a.is_write for a in op.schema.args):
        why = f"{op.name} writes to an argument, and the derivative of such an op is not captured yet"
        capture.unknown.update((id(v), why) for v in made)
    _let_need(capture, made)
    positional = [(a, v) for a, v, declared in zip(args, node.args, op.schema.args) if not declared.kwarg_only]
    needs = tuple(_needs(capture, v) for _, v in positional)
    context = Context(needs)
    shown = [capture.show(Traced(Root(v, v.hint))) for v in made]
    in_list = [r.is_list for r in op.schema.returns]
    returns = (tuple(made),) if in_list == [True] else tuple(made)
    if setup is not None:
        output = shown if in_list == [True] else shown[0] if len(shown) == 1 else tuple(shown)
        named = {d.name: a for a, d in zip(args, op.schema.args) if d.kwarg_only}
        inputs = tuple(a for a, _ in positional)
        capture.resume(setup, context, inputs, *((named,) if keywords else ()), output)
    capture.tape.append(FormulaEntry(op, node, made, backward, context, returns))


def note_unknown(capture, op, node, made, why):
    """Put a call on the tape that nobody knows a derivative of: a gradient that arrives at its results is refused."""
    _let_need(capture, made)
    capture.unknown.update((id(v), why) for v in made)
    capture.tape.append(FormulaEntry(op, node, made, None, None, ()))


def _let_need(capture, made):
    for value in made:
        if isinstance(value.hint, Tensor) and (value.hint.is_floating_point() or value.hint.is_complex()):
            capture.needs.add(id(value))


def _needs(capture, a):
    if isinstance(a, tuple):
        return [_needs(capture, x) for x in a]
    return isinstance(a, Value) and id(a) in capture.needs
