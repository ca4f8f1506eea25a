"""Captured programs: graphs of ops, how they are made, checked, changed, run and kept.

`Graph` is one. `ir` says what it consists of, `text` writes and reads it, `check` knows its rules, `interpret` runs it.
"""

from .check import GraphError
from .graph import Graph
from .ir import Block, Node, State, Value
from .types import Type

__all__ = ["Block", "Graph", "GraphError", "Node", "State", "Type", "Value"]
