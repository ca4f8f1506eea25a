"""What is done to graphs of Python calls: `shape_prop`, `split_module`."""

from . import shape_prop, split_module

__all__ = ["shape_prop", "split_module"]
