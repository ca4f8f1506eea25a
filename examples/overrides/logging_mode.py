"""A mode that writes down every call, and a subclass of Tensor that does so for calls in which it takes part."""

import tinygrad_ext as tg
from tinygrad_ext.overrides import TorchFunctionMode, resolve_name


class LoggingMode(TorchFunctionMode):
    """Collects a line for each function called inside the `with`, factories too.

    Arguments:
        write: called with each line as it comes; collects only unless given.

        >>> with LoggingMode() as log:
        ...     y = tg.ones(2, 3) @ tg.ones(3)
        >>> print(*log.lines, sep="\\n")
        tinygrad_ext.ones(2, 3) -> float32[2, 3]
        tinygrad_ext.ones(3) -> float32[3]
        tinygrad_ext.Tensor.matmul(float32[2, 3], float32[3]) -> float32[2]
    """

    def __init__(self, write=None):
        super().__init__()
        self.lines, self.write = [], write

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        line = describe(func, args, kwargs or {}, result)
        self.lines.append(line)
        if self.write is not None:
            self.write(line)
        return result


class LoggingTensor(tg.Tensor):
    """A tensor whose calls are written down in `LoggingTensor.lines`; results are LoggingTensors too.

    >>> x = tg.ones(2).as_subclass(LoggingTensor)
    >>> LoggingTensor.lines.clear()
    >>> (x + 1).sum().tolist()
    4.0
    >>> LoggingTensor.lines[0]
    'tinygrad_ext.Tensor.add(float32[2], 1) -> float32[2]'
    """

    lines = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        with tg.overrides.DisableTorchFunctionSubclass():  # describing a tensor asks for its shape
            cls.lines.append(describe(func, args, kwargs or {}, result))
        return result


def describe(func, args, kwargs, result):
    """'tinygrad_ext.add(float32[2], 1) -> float32[2]'"""
    given = [_show(a) for a in args] + [f"{k}={_show(v)}" for k, v in kwargs.items()]
    return f"{resolve_name(func) or func.__name__}({', '.join(given)}) -> {_show(result)}"


def _show(value):
    if isinstance(value, tg.Tensor):
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
    if type(value) in (list, tuple):
        return f"[{', '.join(map(_show, value))}]"
    return repr(value)
