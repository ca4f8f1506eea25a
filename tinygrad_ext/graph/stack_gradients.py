"""Derivatives of stacks, which loops keep values on for their backward pass: the gradient of one is a stack, too.

A type that may be None, on a stack, tells that what lies there may be undefined; whoever pops it knows when it is not.
It has an entry for each entry of the other: for each tensor and each inner stack there the gradient, None where nothing
arrived, and behind a gradient that may not be there a bool that says so. What a push put on comes off by a pop in the
backward pass, and the other way round, so any order of derivative is of the same form. Every stack is read once.
"""

from .ir import Value
from .items import NotDerived
from .types import BOOL, NONE, TENSOR, Type, optional

STACK = "Stack"


def is_stack(type):
    """Whether values of a type are stacks; such a value may be undefined."""
    return type.word == STACK or (type.word == "Optional" and type.args[0].word == STACK)


def holds_gradients(type):
    """Whether what lies on a stack has a place on the stack of gradients."""
    type = type.args[0] if type.word == "Optional" else type
    return type is TENSOR or type.word == STACK


def empty(capture, block=None):
    """The stack that nothing lies on, of a type that is still to be said."""
    block = capture.block if block is None else block
    return capture.graph.make(block, "prim::stack", (), (Type(STACK),), ((),)).output


def filled(example, typical):
    """An example of a stack of which each part may be looked at: what is not there this time is as it was elsewhere."""
    if example is None or example == ():
        return typical
    if type(example) is not tuple or type(typical) is not tuple or len(typical) != len(example):
        return example
    return (example[0], *map(filled, example[1:], typical[1:]))


class StackEntry:
    """What the tape has of a push or a pop."""

    linear = True

    def __init__(self, node):
        self.node, self.made = node, node.outputs

    def reads(self, needs):
        """Values that its backward may read."""
        return ()

    def note(self, capture):
        if self.node.op == "prim::pop":
            types = self.node.args[0].type.args
            capture.hollow.update(id(v) for v, type in zip(self.made[1:], types) if type.word == "Optional")
        if any(id(v) in capture.needs for v in self.node.values()):
            capture.needs.update(id(v) for v in self.made if is_stack(v.type) or _flows(v))
            capture.tape.append(self)

    def spread(self, passed, arrived):
        (_push_back if self.node.op == "prim::pop" else _pop_back)(passed, self.node, arrived)


def _flows(value):
    hint = value.hint
    return holds_gradients(value.type) and hint is not None and (hint.is_floating_point() or hint.is_complex())


def _push_back(passed, node, arrived):
    """The gradient of what was popped goes on the stack of gradients."""
    capture, (rest, *row) = passed.capture, arrived
    rest = empty(capture) if rest is None else rest
    args, types = [rest], []
    for value, grad in zip(node.outputs[1:], row):
        if not holds_gradients(value.type):
            continue
        maybe = None if grad is None or is_stack(value.type) else passed.maybe_of(value)
        grad = capture.lift(grad)
        found = [grad] if maybe is None else [grad, maybe]
        args += found
        types += [_type_of(capture, a) for a in found]
    hint = (rest.hint, *(a.hint if isinstance(a, Value) else a for a in args[1:]))
    made = capture.graph.make(capture.block, "prim::push", args, (Type(STACK, types),), (hint,))
    passed.give(node.args[0], made.output)


def _type_of(capture, a):
    if not isinstance(a, Value):
        return NONE
    return optional(a.type) if id(a) in capture.hollow else a.type


def _pop_back(passed, node, arrived):
    """The gradients of what was pushed come from the stack of gradients."""
    capture, (stack,) = passed.capture, arrived
    hints = stack.hint if stack.hint else (None,) * (1 + len(stack.type.args))
    types = [t.args[0] if t.word == "Optional" else t for t in stack.type.args]
    pop = capture.graph.make(capture.block, "prim::pop", (stack,), (stack.type, *types), hints)
    rest, *row = pop.outputs
    passed.give(node.args[0], rest)
    for value, type in zip(node.args[1:], node.output.type.args):
        if not holds_gradients(type):
            continue
        grad = row.pop(0)
        maybe = row.pop(0) if row and row[0].type is BOOL else None
        if grad.type is not NONE and isinstance(value, Value):
            passed.flag = maybe
            passed.give(value, passed.gradient(grad))


def give(passed, value, grad):
    """Let a stack of gradients arrive at a stack."""
    if passed.so_far(value) is not None:
        raise NotDerived("a stack that is read twice")
    passed.put(value, grad)
