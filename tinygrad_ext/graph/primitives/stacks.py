"""Stacks: what a loop keeps of each turn. None of these changes the stack that it is given."""

from ..stacks import Stack
from .table import primitive


def _pop(stack):
    if type(stack) is Stack:
        return stack.pop()
    if not stack:
        raise IndexError("prim::pop: the stack is empty")
    return stack


# the empty one is (), any other the stack before and the values of the last turn; plans make a Stack of them
primitive("stack", "", None, tuple)
primitive("push", "...", None, lambda *parts: parts)
primitive("pop", "Any", None, _pop)
