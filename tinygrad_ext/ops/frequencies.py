"""What goes with Fourier transforms: the frequencies of their numbers, and shifts that put zero in the middle."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample


def _shifted(t, dim, back):
    dims = list(range(t.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    sizes = [t.size(d) for d in dims]
    if not dims and dim is not None:
        raise RuntimeError("`shifts` required: dim of a shift must name a dimension, or be None for all, got none")
    return t.roll([(n + 1) // 2 if back else n // 2 for n in sizes], dims) if dims else t.clone()


def _numpy_shift(name):
    def reference(x, dim=None):
        import numpy

        return getattr(numpy.fft, name)(x, dim)

    return reference


for _name, _back in (("fftshift", False), ("ifftshift", True)):
    op(
        f"aten::{_name}(Tensor self, int[1]? dim=None) -> Tensor",
        compose=lambda self, dim, back=_back: _shifted(self, dim, back),
        types="bool int float half complex",
        where="fft",
        variants="function",
        samples=lambda make: [
            Sample(make(5)),
            Sample(make(2, 4)),
            Sample(make(3, 4, 2), dim=(0, 1)),
            Sample(make(3, 2), dim=0),
        ],
        reference=_numpy_shift(_name),
        errors=[(lambda name=_name: getattr(tg.fft, name)(tg.ones(2), dim=()), RuntimeError, "`shifts` required")],
        doc="Moves the zero frequency to the middle of the given dimensions, by default of all."
        if not _back
        else "The inverse of fftshift.",
    )


def _frequencies(n, d, real, dtype, device, requires_grad):
    if n < 0:
        raise RuntimeError(f"Invalid number of data points ({n}) specified: none or some are wanted")
    dtype = tg.get_default_dtype() if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"fftfreq: expected a floating point or complex dtype, got {dtype}")
    whole = tg.arange(n // 2 + 1 if real else n, dtype=tg.float64, device=device)
    if not real:
        whole = tg.where(whole < (n + 1) // 2, whole, whole - n)
    found = (whole / (n * d)).to(dtype)
    return found.requires_grad_() if requires_grad else found


for _name, _real in (("fftfreq", False), ("rfftfreq", True)):
    op(
        f"aten::{_name}(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool pin_memory=False, bool requires_grad=False) -> Tensor",
        compose=lambda n, d, dtype, layout, device, pin_memory, requires_grad, real=_real: _frequencies(
            n, d, real, dtype, device, requires_grad
        ),
        jvp="none",
        where="fft",
        variants="function out",
        tags="adopts",
        samples=lambda make: [Sample(5), Sample(6, 0.5), Sample(1, d=2.0)],
        reference=lambda n, d=1.0, name=_name: getattr(__import__("numpy").fft, name)(n, d),
        errors=[(lambda name=_name: functions[f"fft.{name}"](-1), RuntimeError, "Invalid number of data points (-1)")],
        doc="The frequencies of the numbers that "
        + ("rfft" if _real else "fft")
        + " gives of n points, d apart, in cycles for each unit of d.",
    )
