"""linspace and logspace between bounds that tensors of one element hold: by a formula, so that none of them is read."""

import math

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"
)


def _line(start, end, steps, dtype, device, name):
    """Numbers at equal distances in the widest dtype, counted from the nearer of the two bounds."""
    bounds = [b.detach() if hasattr(b, "dim") else b for b in (start, end)]
    for bound in bounds:
        if hasattr(bound, "dim") and bound.dim():
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got one of {bound.dim()} dimension(s)"
            )
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative: {name}() got {steps}")
    wide = tg.complex128 if dtype.is_complex else tg.float64
    if not (dtype.is_complex or dtype.is_floating_point):
        bounds = [b.trunc() if hasattr(b, "dim") else int(b) for b in bounds]
    place = tg.arange(steps, dtype=tg.float64, device=device)
    first, last = [b.to(place.device, wide) if hasattr(b, "dim") else b for b in bounds]
    step = (last - first) / max(steps - 1, 1)
    return tg.where(place * 2 < steps, first + step * place, last - step * (steps - 1 - place))


def _kind(start, end, dtype):
    if dtype is not None:
        return dtype
    is_complex = any(b.is_complex() if hasattr(b, "dim") else isinstance(b, complex) for b in (start, end))
    wide = tg.get_default_dtype()
    return (tg.complex128 if wide is tg.float64 else tg.complex64) if is_complex else wide


def _power(base, exponent):
    """base ** exponent in double precision; nan where it is no real number."""
    try:
        value = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return math.nan if isinstance(value, complex) else value


def _np_logspace(start, end, steps):
    import numpy

    return numpy.logspace(start, end, steps)


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
