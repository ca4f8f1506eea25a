"""`cond`, `while_loop` and scans: branches and loops given as functions, which graphs keep for what they are.

The room has PyTorch's name, so that what stands here is found by the paths that programs know.
"""

from .associative_scan import associative_scan as associative_scan
from .cond import cond as cond
from .scan import scan as scan
from .while_loop import while_loop as while_loop

__all__ = ["associative_scan", "cond", "scan", "while_loop"]
