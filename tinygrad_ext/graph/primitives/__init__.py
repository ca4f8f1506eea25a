"""Primitives: what a graph does that is no op. Numbers, text, containers, objects, sizes, control flow.

Each row says what a primitive takes and gives in types and how it is computed; control flow (`prim::If`, `prim::Loop`,
`prim::Function`) is computed by whoever runs the graph, see interpret.py. A letter stands for any one type, the same at
each place; "..." as the last argument for any number of further ones. The result of those with `None` is what the node
says. Rows with an `effect` keep their place; those that change what others may hold are allowed only in graphs that say
that they have effects.
"""

from . import containers, contexts, derivatives, gradients, guards, local, numbers, objects, stacks, tensors, texts
from .guards import GuardFailed
from .local import FORMS
from .table import CONTROL, TABLE, Primitive, instantiated, primitive

__all__ = ["CONTROL", "FORMS", "TABLE", "GuardFailed", "Primitive", "containers", "contexts", "derivatives",
           "gradients", "guards", "instantiated", "local", "numbers", "objects", "primitive", "stacks", "tensors",
           "texts"]  # fmt: skip
