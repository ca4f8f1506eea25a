"""Values that are there later: a thin layer over the standard library's futures, with PyTorch's names and rules."""

import concurrent.futures
import threading
import traceback
import types

from tinygrad_ext.core.call.boundary import boundary

__all__ = ["Future", "collect_all", "wait_all"]


@boundary
class Future:
    """A value, or an exception, that some thread will set.

    Args:
        devices: none; values here are on the cpu.

        >>> from tinygrad_ext.futures import Future
        >>> later = Future()
        >>> double = later.then(lambda done: 2 * done.value())
        >>> later.set_result(4)
        >>> double.wait()
        8
    """

    def __init__(self, *, devices=None):
        if devices:
            raise ValueError(f"Future: devices are accelerators with an index, and there are none; got {devices}")
        self._inner = concurrent.futures.Future()

    __class_getitem__ = classmethod(types.GenericAlias)  # lets `Future[int]` stand in annotations

    def done(self):
        """Whether a result or an exception is set."""
        return self._inner.done()

    def wait(self):
        """Wait for the value and return it, or raise the exception that was set."""
        return self._inner.result()

    def value(self):
        """The value of a future that is done, or the exception that was set.

        Raises:
            RuntimeError: it is not done.
        """
        if not self._inner.done():
            raise RuntimeError("Future.value(): the future is not done yet; wait() waits for it")
        return self._inner.result()

    def set_result(self, result):
        """Set the value and call the callbacks.

        Raises:
            RuntimeError: it is done already.
        """
        self._complete(self._inner.set_result, result)

    def set_exception(self, result):
        """Set an exception, which `wait` and `value` raise.

        Raises:
            AssertionError: ``result`` is no Exception.
            RuntimeError: the future is done already.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(self._inner.set_exception, result)

    @staticmethod
    def _complete(setter, result):
        try:
            setter(result)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again: a result or exception is set once"
            ) from None

    def then(self, callback):
        """A future of what ``callback(self)`` returns, which is called when this one is done: at once if it is.

        What the callback raises is raised by the new future as a RuntimeError with the traceback.
        """
        _need_callable("then", callback)
        made = type(self)()
        self._inner.add_done_callback(lambda _: made._set_to(callback, self))
        return made

    def _set_to(self, callback, before):
        try:
            result = callback(before)
        except Exception as error:
            kind = type(error).__name__
            text = f"Got the following error when running the callback: {kind}: {error}\n\n{traceback.format_exc()}"
            self.set_exception(RuntimeError(text))
        else:
            self.set_result(result)

    def add_done_callback(self, callback):
        """Call ``callback(self)`` when this is done: at once if it is. What it raises is logged."""
        _need_callable("add_done_callback", callback)
        self._inner.add_done_callback(lambda _: callback(self))

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future: send the value, wait() gives it")


def _need_callable(method, callback):
    if not callable(callback):
        raise TypeError(f"{method}(): argument 'callback' must be callable, not {type(callback).__name__}")


@boundary
def collect_all(futures):
    """A future of the list of the given ones, done when they all are; it raises what the first of them raises."""
    futures = list(futures)
    for future in futures:
        if not isinstance(future, Future):
            raise TypeError(f"collect_all(): futures must be a list of Future, found {type(future).__name__}")
    made = Future()
    if not futures:
        made.set_result([])
    left, lock = [len(futures)], threading.Lock()

    def note(_):
        with lock:
            left[0] -= 1
            if left[0]:
                return
        errors = [error for error in (future._inner.exception() for future in futures) if error is not None]
        if errors:
            made.set_exception(errors[0])
        else:
            made.set_result(futures)

    for future in futures:
        future._inner.add_done_callback(note)
    return made


@boundary
def wait_all(futures):
    """Wait for all futures and return the list of their values; raises what the first that failed raises."""
    return [future.wait() for future in collect_all(futures).wait()]
