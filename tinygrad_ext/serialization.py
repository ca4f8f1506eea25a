"""PyTorch's name for the place of `save` and `load`; how they work stands in `archive/`."""

import os
from collections.abc import Callable
from typing import IO, Any, Union

from tinygrad_ext.archive.files import load, save
from tinygrad_ext.archive.safe_names import named as _named_safe
from tinygrad_ext.archive.sparse_parts import LAYOUTS
from tinygrad_ext.core.data.dtype import device, strided

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

# for annotations; Union, because libraries ask for its arguments
FILE_LIKE = Union[str, os.PathLike, IO[bytes]]  # noqa: UP007
MAP_LOCATION = Union[Callable[[Any, str], Any], device, str, dict[str, str], None]  # noqa: UP007


def _get_layout(name):
    """The layout that a pickle names."""
    return {**LAYOUTS, str(strided): strided}[name]


def add_safe_globals(safe_globals):
    """Let `load` make objects of these classes, and call these functions, where a PyTorch file names them.

    A file may call them with any arguments. An entry is a class or function, or (one, the name that files have for it).
    """
    _named_safe.extend(entry for entry in safe_globals if entry not in _named_safe)


def get_safe_globals():
    """What was named safe."""
    return list(_named_safe)


def clear_safe_globals():
    """Forget it."""
    _named_safe.clear()


class safe_globals:
    """A context in which these are named safe."""

    def __init__(self, safe_globals):
        self._named = list(safe_globals)

    def __enter__(self):
        self._before = get_safe_globals()
        add_safe_globals(self._named)

    def __exit__(self, *error):
        _named_safe[:] = self._before
