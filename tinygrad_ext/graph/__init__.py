"""Captured programs: graphs of ops, how they are made, checked, changed, run and kept.

`Graph` is one. `ir` says what it consists of, `text` writes and reads it, `check` knows its rules, `interpret` runs it.
`Program` is several over one state; `save` and `load` keep one in a file. `capture(f)(*args)` writes down what f does,
under whichever transforms it is called.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext import func, graph
    >>> print(graph.capture(func.grad(lambda x: x.exp().sum()))(tg.ones(2)).nodes[-1].op)
    aten::mul.Tensor
"""

from .archive import info, load, save
from .capture import capture
from .check import GraphError
from .graph import Graph
from .ir import Block, Node, State, Value
from .program import Program
from .types import Type
from .versions import upgrader

__all__ = ["Block", "Graph", "GraphError", "Node", "Program", "State", "Type", "Value"]
__all__ += ["capture", "info", "load", "save", "upgrader"]
