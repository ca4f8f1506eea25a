"""linspace and logspace between bounds that tensors of one element hold: by a formula, so that none of them is read."""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"
)


def _numpy():
    import numpy

    return numpy


def _np_line(start, end, steps, pairs=False):
    return _numpy().linspace(start, end, steps, axis=-1, dtype=complex if pairs else float)


op(
    "aten::_line(Tensor start, Tensor end, int steps, bool pairs=False) -> Tensor",
    kernel="_line",
    batch=lambda b, start, end, steps, pairs: fused._line(b.whole(start), b.whole(end), steps, pairs),
    where="_fused",
    variants="function",
    types="int float half",
    grad={"start": "none", "end": "none"},
    jvp="none",
    reference=_np_line,
    samples=lambda make: [
        *[Sample(make(), make(), n, c) for n, c in ((5, False), (1, False), (0, False), (4, True))],
        Sample(make(2, 3), make(2, 3), 4),
    ],
    errors=[
        (lambda: fused._line(zeros(2), zeros(), 1), RuntimeError, "expected as many starts as ends"),
        (lambda: fused._line(zeros(), zeros(), -1), RuntimeError, "must be non-negative"),
    ],
    doc="linspace for each start and end, a row each, in float64 or in complex128; with no derivative.",
)


def _line(start, end, steps, dtype, device, name):
    """Numbers at equal distances in the widest dtype, counted from the nearer of the two bounds."""
    whole = not (dtype.is_complex or dtype.is_floating_point)
    bounds = []
    if device is None and any(hasattr(bound, "dim") and bound.is_meta for bound in (start, end)):
        device = "meta"
    for bound in (start, end):
        if not hasattr(bound, "dim"):
            bound = tg.scalar_tensor(int(bound) if whole else bound, dtype=_wide(dtype), device=device)
        elif bound.dim():
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got one of {bound.dim()} dimension(s)"
            )
        elif device is not None:
            bound = bound.to(device)
        bounds.append(bound.trunc() if whole and bound.is_floating_point() else bound)
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative: {name}() got {steps}")
    return fused._line(*bounds, steps, dtype.is_complex)


def _wide(dtype):
    return tg.complex128 if dtype.is_complex else tg.float64


def _kind(start, end, dtype):
    if dtype is not None:
        return dtype
    wide = tg.get_default_dtype()
    for bound in (start, end):
        if bound.dtype.is_complex if hasattr(bound, "dim") else isinstance(bound, complex):
            return tg.complex128 if wide is tg.float64 else tg.complex64
    return wide


def _power(base, exponent):
    """base ** exponent in double precision; nan where it is no real number."""
    try:
        value = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return math.nan if isinstance(value, complex) else value


def _np_logspace(start, end, steps):
    return _numpy().logspace(start, end, steps)


def _linspace(start, end, steps, dtype, layout, device, pin_memory, requires_grad):
    dtype = _kind(start, end, dtype)
    found = _line(start, end, steps, dtype, device, "linspace").to(dtype)
    return found.requires_grad_() if requires_grad else found


def _logspace(start, end, steps, base, dtype, layout, device, pin_memory, requires_grad):
    dtype = _kind(start, end, dtype)
    if steps == 1 and isinstance(start, (int, float)) and dtype == tg.float32:
        only = _power(base, start)
        if math.isfinite(only) and abs(only) > tg.finfo(dtype).max:
            raise RuntimeError(
                f"logspace(): value cannot be converted to type {dtype.name} without overflow: {base} ** {start}; "
                "ask for a wider dtype"
            )
    found = tg.pow(base, _line(start, end, steps, dtype, device, "logspace")).to(dtype)
    return found.requires_grad_() if requires_grad else found


for _name, _compose, _base, _reference in (
    ("linspace", _linspace, "", "numpy.linspace"),
    ("logspace", _logspace, "float base=10.0, ", _np_logspace),
):
    for _overload, _start, _end in (
        ("Tensor_Tensor", "Tensor", "Tensor"),
        ("Tensor_Scalar", "Tensor", "Scalar"),
        ("Scalar_Tensor", "Scalar", "Tensor"),
    ):
        op(
            f"aten::{_name}.{_overload}({_start} start, {_end} end, int steps, {_base}*, {_OPTIONS}) -> Tensor",
            compose=_compose,
            jvp="none",
            variants="function out",
            tags="adopts",
            reference=_reference,
            samples=lambda make, kinds=(_start, _end): [
                Sample(*[make() if kind == "Tensor" else n for n, kind in zip((0.0, 1.0), kinds)], steps)
                for steps in (5, 1)
            ],
            errors=[
                (
                    lambda name=_name: getattr(tg, name)(zeros(2), zeros(2), 1),
                    RuntimeError,
                    "only supports 0-dimensional start and end tensors",
                ),
                (lambda name=_name: getattr(tg, name)(zeros(), zeros(), -1), RuntimeError, "must be non-negative"),
            ],
            doc=f"{_name} between bounds of which one or both are tensors of one element.",
        )
