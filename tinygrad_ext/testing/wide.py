"""Operands of references: NumPy arrays that compute in float64, whatever the dtype of the op under test."""

import numpy as np

from tinygrad_ext.testing import compare


class Wide(np.ndarray):
    """An array whose integers stay what they are, and become float64 where NumPy takes small ones to float16."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        plain = [np.asarray(x) if isinstance(x, Wide) else x for x in inputs]
        if out is not None:
            kwargs["out"] = tuple(np.asarray(o) if isinstance(o, Wide) else o for o in out)
        found = getattr(ufunc, method)(*plain, **kwargs)
        several = found if isinstance(found, tuple) else (found,)
        if out is None and any(getattr(r, "dtype", None) in (np.float16, np.float32) for r in several):
            found = getattr(ufunc, method)(*[_float64(x) for x in plain], **kwargs)
        return tuple(map(wide, found)) if isinstance(found, tuple) else wide(found)

    def __array_function__(self, func, types, args, kwargs):
        found = super().__array_function__(func, types, args, kwargs)
        return wide(found) if isinstance(found, np.ndarray) else found


def wide(value):
    """An array or a number of NumPy as Wide, floats in float64; anything else as it is."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    array = np.asarray(value)
    return array.astype({"f": "float64", "c": "complex128"}.get(array.dtype.kind, array.dtype)).view(Wide)


def _float64(value):
    small = getattr(getattr(value, "dtype", None), "kind", None) in ("b", "i", "u")
    return value.astype("float64") if small else value


def doubled(t):
    """A tensor as an array of float64, integers too: what an op gives that computes them as floats."""
    return np.asarray(_float64(wide(compare.to_numpy(t))))


def rounded(want, got):
    """A reference's floating result in the dtype of the op's, infinities of overflow included."""
    dtype, want = compare.to_numpy(got).dtype, np.asarray(want)
    with np.errstate(all="ignore"):
        return want.astype(dtype) if dtype.kind == "f" == want.dtype.kind else want
