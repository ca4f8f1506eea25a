"""Stacks: what a loop keeps of each turn. None of these changes the stack that it is given."""

from ..stacks import Stack
from .table import primitive


class Emptied(IndexError):
    """A stack is popped that nothing lies on."""


def _pop(stack):
    found = stack.pop() if type(stack) is Stack else stack
    if not found:
        raise Emptied("prim::pop: the stack is empty")
    return found


# the empty one is (), any other the stack before and the values of the last turn; plans make a Stack of them
primitive("stack", "", None, tuple)
primitive("push", "...", None, lambda *parts: parts)
primitive("pop", "Any", None, _pop)
