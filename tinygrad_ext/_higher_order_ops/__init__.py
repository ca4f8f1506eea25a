"""`cond` and `while_loop`: branches and loops given as functions, which graphs keep for what they are.

The room has PyTorch's name, so that what stands here is found by the paths that programs know.
"""

from .cond import cond as cond
from .while_loop import while_loop as while_loop

__all__ = ["cond", "while_loop"]
