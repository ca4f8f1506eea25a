"""NumPy's functions on tensors: np.max(t, axis=0) calls `t.max(axis=0, out=None)`, which is no call of PyTorch's.

Methods of tensors take no `out`, so one given by name tells NumPy's call from any other. Where NumPy and the tensor's
own ops mean the same the ops compute, gradient included; else NumPy computes on the tensor's memory, by its rules, and
the result becomes a tensor.
"""

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.tensor.interop import METHODS


def answer(method, args, kwargs):
    """A function that gives what NumPy means by a call of a tensor's method; None for any other call."""
    if "out" not in kwargs or method.name not in _OWN or len(args) != 1 or not isinstance(args[0], Tensor):
        return None
    return lambda: _run(method.name, args[0], **kwargs)


def _run(name, t, axis=None, dtype=None, out=None, keepdims=False, ddof=0, **more):
    if dtype is None and out is None and not more:
        own = _OWN[name](t, axis, bool(keepdims), ddof)
        if own is not None:
            return own
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, **({"ddof": ddof} if name in ("std", "var") else {})}
    options = {key: value for key, value in options.items() if key not in ("dtype",) or value is not None}
    return _by_numpy(name, t, out, {**options, **more})


def _by_numpy(name, t, out, options):
    import numpy

    target = out.numpy() if isinstance(out, Tensor) else out
    found = getattr(numpy, name)(t.numpy(), out=target, **options)
    return out if out is not None else METHODS["__array_wrap__"](t, found)


# ---- the tensor's own ops; None where NumPy's result would be another ------------------------------------------------


def _plain(name):
    def run(t, axis, keepdims, ddof):
        return getattr(t, name)(_dims(t, axis), keepdims)

    return run


def _dims(t, axis):
    return tuple(range(t.dim())) if axis is None else axis


def _mean(t, axis, keepdims, ddof):
    floating = t.is_floating_point() or t.is_complex()
    return t.mean(_dims(t, axis), keepdims) if floating else None  # of integers NumPy's is a float64


def _spread(name):
    def run(t, axis, keepdims, ddof):
        if not t.is_floating_point():
            return None
        return getattr(t, name)(_dims(t, axis), correction=ddof, keepdim=keepdims)

    return run


def _prod(t, axis, keepdims, ddof):
    if isinstance(axis, tuple):
        return None
    if axis is None:
        whole = t.prod()
        return whole.reshape((1,) * t.dim()) if keepdims else whole
    return t.prod(axis, keepdims)


_OWN = {
    "sum": _plain("sum"),
    "max": _plain("amax"),
    "min": _plain("amin"),
    "any": _plain("any"),
    "all": _plain("all"),
    "mean": _mean,
    "prod": _prod,
    "std": _spread("std"),
    "var": _spread("var"),
}
