"""Comparing results: bit by bit, within a tolerance, with NumPy and with PyTorch."""

import contextlib

import numpy as np

# relative and absolute tolerance by dtype name, for functions of at most a few roundings
TOLERANCE = {
    "float64": (1e-7, 1e-7),
    "float32": (2e-5, 2e-5),
    "float16": (2e-2, 2e-2),
    "bfloat16": (8e-2, 8e-2),
    "complex64": (2e-5, 2e-5),
    "complex128": (1e-7, 1e-7),
}


@contextlib.contextmanager
def tolerances(rtol=None, atol=None):
    """Inside, these count for every dtype; None keeps the one of the dtype."""
    before = dict(TOLERANCE)
    TOLERANCE.update(
        {name: (r if rtol is None else rtol, a if atol is None else atol) for name, (r, a) in before.items()}
    )
    try:
        yield
    finally:
        TOLERANCE.update(before)


def flatten(result):
    """The tensors and numbers of a result, in order."""
    if isinstance(result, (tuple, list)) and not hasattr(result, "numel"):
        return [leaf for r in result for leaf in flatten(r)]
    return [result]


def to_numpy(value):
    """A tensor (ours or PyTorch's), number or array as a NumPy array; bfloat16 and complex32 by what holds them."""
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.layout) == "torch.sparse_coo":
            value = value.to_dense()
        value = value.resolve_conj().resolve_neg()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        elif str(value.dtype) == "torch.complex32":
            value = value.cfloat()
        return value.numpy()
    return np.asarray(value)


def same_bits(a, b):
    """Whether two results are equal bit by bit, NaNs of any payload being equal."""
    a, b = flatten(a), flatten(b)
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        x, y = to_numpy(x), to_numpy(y)
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        if x.tobytes() != y.tobytes() and not np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
            return False
    return True


def assert_close(got, want, dtype, what, factor=1.0, check_dtype=True):
    """AssertionError naming `what` unless both results agree in shape, dtype and, within tolerance, in value."""
    got, want = flatten(got), flatten(want)
    if len(got) != len(want):
        raise AssertionError(f"{what}: {len(got)} results, expected {len(want)}")
    for k, (g, w) in enumerate(zip(got, want)):
        if g is None or w is None:
            if g is not None or w is not None:
                raise AssertionError(f"{what}: result {k} is {g}, expected {w}")
            continue
        g, w = to_numpy(g), to_numpy(w)
        if g.shape != w.shape:
            raise AssertionError(f"{what}: result {k} has shape {g.shape}, expected {w.shape}")
        rtol, atol = TOLERANCE.get(dtype if dtype in ("float16", "bfloat16") else str(g.dtype), (0, 0))
        if not check_dtype and g.dtype.kind in "bui":
            w = w.astype(g.dtype)
        if check_dtype and g.dtype != w.dtype:
            raise AssertionError(f"{what}: result {k} has dtype {g.dtype}, expected {w.dtype}")
        if g.dtype == w.dtype and g.tobytes() == w.tobytes():
            continue  # as most are
        if g.dtype.kind in "fc" or w.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                near = (np.abs(g - w) <= atol * factor + rtol * factor * np.abs(w)) & np.isfinite(w)
            if near.all():
                continue  # NumPy's function, which tells where they differ, costs tens of times as much
            np.testing.assert_allclose(
                g, w, rtol * factor, atol * factor, equal_nan=True, err_msg=f"{what}: result {k}"
            )
        else:
            np.testing.assert_array_equal(g, w, err_msg=f"{what}: result {k}")
