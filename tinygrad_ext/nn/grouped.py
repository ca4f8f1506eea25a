"""Products of groups of rows, each with a matrix of its own, as in a mixture of experts."""

import sys

import tinygrad_ext as tg
from tinygrad_ext.core.call.overridable import overridable as _overridable
from tinygrad_ext.core.data.tensor import Carried

_DTYPES = (tg.float32, tg.bfloat16, tg.float16)


@_overridable
def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of groups: group g of a matrix ends before row or column offs[g], and that of a batch is its matrix g.

    | mat_a | mat_b | result | groups |
    |---|---|---|---|
    | (M, K) | (G, K, N) | (M, N) | of rows of mat_a; rows from offs[-1] on are 0 |
    | (G, M, K) | (K, N) | (M, N) | of columns of mat_b; columns from offs[-1] on are 0 |
    | (M, K) | (K, N) | (G, M, N) | of what is summed over |
    | (G, M, K) | (G, K, N) | (G, M, N) | without offs: `bmm` |

    Args:
        mat_a, mat_b: float32, bfloat16 or float16, both alike.
        offs: int32, one for each group, none smaller than the one before.
        bias: None. out_dtype: None or the dtype of mat_a.

    Returns:
        The products, differentiable in both.

    Raises:
        RuntimeError: other shapes, dtypes and offsets.

    >>> a, b = tg.ones(3, 2), tg.stack([tg.ones(2, 1), 5 * tg.ones(2, 1)])
    >>> tg.nn.functional.grouped_mm(a, b, offs=tg.tensor([1, 3], dtype=tg.int32)).flatten()
    tensor([ 2., 10., 10.])
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    amp = sys.modules.get("tinygrad_ext.amp.state")  # not loaded before autocast is asked for
    if amp is None or not amp.is_autocast_cpu_enabled():
        return _products(mat_a, mat_b, offs)
    amp.state.enabled["cpu"] = False  # autocast leaves the dtype of these products
    try:
        return _products(mat_a, mat_b, offs)
    finally:
        amp.state.enabled["cpu"] = True


def _products(mat_a, mat_b, offs):
    if offs is None:
        return mat_a.bmm(mat_b)
    if mat_a.dim() == 3:
        return _products(mat_b.mT, mat_a.mT, offs).mT
    ends = _ends(offs, mat_a.shape[0 if mat_b.dim() == 3 else 1])
    spans, rows = list(zip([0, *ends], ends)), mat_a.shape[0]
    known = all(type(end) is int for end in ends)  # else they are numbers of a graph, by which nothing is decided
    if mat_b.dim() == 2:
        parts = [mat_a[:, start:end] @ mat_b[start:end] for start, end in spans]
        return tg.stack(parts) if parts else mat_a.new_zeros(0, mat_a.shape[0], mat_b.shape[1])
    parts = [mat_a[start:end] @ mat_b[g] for g, (start, end) in enumerate(spans) if g == 0 or not known or start < end]
    last = ends[-1] if ends else 0
    if not known or last < rows or not parts:
        parts.append(mat_a.new_zeros(rows, mat_b.shape[2])[last:])
    return tg.cat(parts)


def _check(a, b, offs, bias, out_dtype):
    for name, m in (("mat_a", a), ("mat_b", b)):
        if m.dtype not in _DTYPES:
            raise RuntimeError(
                f"grouped_mm(): Expected {name} to be Float32, BFloat16 or Float16 matrix, got {m.dtype}: convert it, "
                "for example with .float()"
            )
        if m.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm(): {name} has to be 2 or 3d, not {m.dim()}d: its shape is {tuple(m.shape)}")
    if a.dtype != b.dtype:
        raise RuntimeError(f"grouped_mm(): expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    if bias is not None:
        raise RuntimeError("grouped_mm(): Bias not supported yet: add it to the result")
    if out_dtype not in (None, a.dtype):
        raise RuntimeError(f"grouped_mm(): output dtype must match `mat_a` dtype {a.dtype}, got {out_dtype}")
    if (offs is not None) is not (a.dim() == 2 or b.dim() == 2):
        raise RuntimeError(
            "grouped_mm(): Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"grouped_mm(): contraction dimension of mat_a and mat_b must match, got {tuple(a.shape)} and "
            f"{tuple(b.shape)}"
        )
    counts = {m.shape[0] for m in (a, b) if m.dim() == 3} | ({offs.numel()} if offs is not None else set())
    if offs is not None and (offs.dim() != 1 or offs.dtype != tg.int32):
        wrong = "offs has to be 1D" if offs.dim() != 1 else "Offsets have to be int32"
        raise RuntimeError(f"grouped_mm(): {wrong}, got {offs.dim()}D of {offs.dtype}")
    if len(counts) > 1:
        raise RuntimeError(f"grouped_mm(): matrix batch sizes have to match, got {', '.join(map(str, sorted(counts)))}")


def _ends(offs, size):
    """Where groups end: numbers, or those of a graph that is captured, which asks the condition at each call."""
    ends = [offs[g].item() for g in range(offs.shape[0])] if type(offs) is Carried else offs.tolist()
    told = "grouped_mm(): offs must rise from 0 to at most the size"
    for a, b in zip([0, *ends], [*ends, size]):
        rises = a <= b
        if not (rises.checked(told) if hasattr(rises, "checked") else rises):
            raise RuntimeError(f"{told} {size} of what it parts, got {ends}")
    return ends
