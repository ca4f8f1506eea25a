"""Calls whose result is asked for later."""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.futures import Future

__all__ = ["Future", "fork", "wait"]


@boundary
def fork(func, *args, **kwargs):
    """Call ``func(*args, **kwargs)`` and return a Future of the result, which `wait` takes.

    The call runs at once, as PyTorch's does outside of compiled programs: what it raises is raised here.

        >>> import tinygrad_ext as tg
        >>> later = tg.jit.fork(tg.add, tg.ones(2), 1)
        >>> tg.jit.wait(later).tolist()
        [2.0, 2.0]
    """
    if not callable(func):
        raise TypeError(f"fork(): argument 'func' must be a function or a module, not {type(func).__name__}")
    made = Future()
    made.set_result(func(*args, **kwargs))
    return made


@boundary
def wait(future):
    """The value of a Future, as soon as it is there."""
    if not isinstance(future, Future):
        raise TypeError(f"wait(): argument 'future' must be a Future, not {type(future).__name__}: fork() returns one")
    return future.wait()


_fork, _wait = fork, wait  # as PyTorch's older programs call them
