"""Captured programs: graphs of ops, how they are made, checked, changed, run and kept.

`Graph` is one. `ir` says what it consists of, `text` writes and reads it, `check` knows its rules, `interpret` runs it.
`Program` is several over one state; `save` and `load` keep one in a file.
"""

from .archive import info, load, save
from .check import GraphError
from .graph import Graph
from .ir import Block, Node, State, Value
from .program import Program
from .types import Type
from .versions import upgrader

__all__ = ["Block", "Graph", "GraphError", "Node", "Program", "State", "Type", "Value"]
__all__ += ["info", "load", "save", "upgrader"]
