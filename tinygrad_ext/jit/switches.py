"""Switches of PyTorch's executor. Graphs are planned in one way here: these change nothing, but check their words."""

import contextlib

from tinygrad_ext.core.call.boundary import boundary


class TracerWarning(Warning):
    """What PyTorch warns with where a trace may not hold for other inputs. Here `trace` raises there instead."""

    @staticmethod
    def ignore_lib_warnings():
        """Nothing: there are none."""


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """A context in which graphs run as everywhere: they have the same bits with and without their plans.

    >>> from tinygrad_ext import jit
    >>> with jit.optimized_execution(False):
    ...     pass
    """
    yield


_FUSERS = (*(f"fuser{i}" for i in range(4)), "none")


@contextlib.contextmanager
def _same():
    yield


@boundary
def fuser(name):
    """A context that names one of PyTorch's fusers, "fuser0" to "fuser3", or "none"; there is one way to fuse here.

    Raises: RuntimeError for another name.
    """
    if name not in _FUSERS:
        raise RuntimeError(f"unrecognized fuser option (name: {name}): fuser() takes one of {', '.join(_FUSERS)}")
    return _same()


class strict_fusion(contextlib.nullcontext):
    """A context that says that everything in it should fuse; `explain()` and `plan().table()` say what does."""


_strategy = [[("STATIC", 2), ("DYNAMIC", 10)]]


@boundary
def set_fusion_strategy(strategy):
    """Remember a list of ("STATIC" or "DYNAMIC", how many); returns the one before. Plans hold for all sizes they can.

    Raises: RuntimeError where a word is neither.
    """
    rows = [tuple(row) for row in strategy]
    for row in rows:
        if len(row) != 2 or row[0] not in ("STATIC", "DYNAMIC"):
            raise RuntimeError(
                f"set_fusion_strategy(): expected pairs of 'STATIC' or 'DYNAMIC' and a number, got {row}: for example "
                '[("STATIC", 2), ("DYNAMIC", 10)]'
            )
    before, _strategy[0] = _strategy[0], rows
    return before


def enable_onednn_fusion(enabled):
    """Nothing: kernels are the package's own."""


def onednn_fusion_enabled():
    """False."""
    return False
