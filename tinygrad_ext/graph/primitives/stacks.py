"""Stacks: what a loop keeps of each turn. None of these changes the stack that it is given."""

from .table import primitive

# the empty one is (), any other a pair: the stack before, the last value
primitive("stack", "", None, tuple)
primitive("push", "Any Any", None, lambda stack, value: (stack, value))
primitive("pop", "Any", None, lambda stack: stack)
