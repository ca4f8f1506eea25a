"""The standard library's multiprocessing, in which tensors are shared and not copied.

What a queue, a pipe or the arguments of a process carry to another process is moved into shared memory and mapped
there: both sides see each other's writes. The memory is a file without a name, so nothing stays behind, however a
process ends.
"""

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403 - PyTorch's module has all names of the standard library's

from tinygrad_ext.core.call.boundary import boundary as _boundary

from .reductions import init_reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGIES = frozenset({"file_descriptor", "file_system"})
_strategy = "file_descriptor"


def get_all_sharing_strategies():
    """Names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy():
    """The name chosen last."""
    return _strategy


@_boundary
def set_sharing_strategy(new_strategy):
    """Choose how memory is shared: by the descriptor of a file without a name, whichever of PyTorch's names is given.

    Raises:
        AssertionError: there is no such strategy.
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(_STRATEGIES)}")
    _strategy = new_strategy


init_reductions()
