"""Composites and derivative rules of several steps compute halves in float32 and round once, at the end."""

import functools

import tinygrad_ext as tg
from tinygrad_ext.core.data.tensor import Tensor


def _half_of(args):
    """The half that all floating tensors among arguments have, else None."""
    found = None
    for a in args:
        for t in a if isinstance(a, (list, tuple)) else (a,):
            if isinstance(t, Tensor) and t.is_floating_point():
                if t.dtype not in (tg.float16, tg.bfloat16) or found not in (None, t.dtype):
                    return None
                found = t.dtype
    return found


def _cast(value, dtype):
    """Floating tensors, alone or in a list, in another dtype; anything else as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(v, dtype) for v in value])
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def rounded_once(compose):
    """compose over halves by way of float32."""

    @functools.wraps(compose)
    def by_float(*args):
        half = _half_of(args)
        return compose(*args) if half is None else _cast(compose(*[_cast(a, tg.float32) for a in args]), half)

    return by_float


def in_float(rule):
    """A derivative rule of several steps, over halves as over float32. Whoever asked for it sums and rounds."""

    @functools.wraps(rule)
    def by_float(*args):
        return rule(*args) if _half_of(args) is None else rule(*[_cast(a, tg.float32) for a in args])

    return by_float
