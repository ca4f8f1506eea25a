"""linspace and logspace between bounds that tensors of one element hold."""

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"
)


def _bound(number, name):
    """A bound that a tensor holds."""
    if not hasattr(number, "dim"):
        return number
    if number.dim():
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got one of {number.dim()} dimension(s)"
        )
    return number.item()


def _between(name):
    def run(start, end, steps, *rest):
        *base, dtype, layout, device, pin_memory, requires_grad = rest
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return getattr(tg, name)(_bound(start, name), _bound(end, name), steps, *base, **options)

    return run


for _name, _base in (("linspace", ""), ("logspace", "float base=10.0, ")):
    for _overload, _start, _end in (
        ("Tensor_Tensor", "Tensor", "Tensor"),
        ("Tensor_Scalar", "Tensor", "Scalar"),
        ("Scalar_Tensor", "Scalar", "Tensor"),
    ):
        op(
            f"aten::{_name}.{_overload}({_start} start, {_end} end, int steps, {_base}*, {_OPTIONS}) -> Tensor",
            compose=_between(_name),
            jvp="none",
            tags="data_dependent",
            variants="function out",
            samples=lambda make, kinds=(_start, _end): [
                Sample(*[make.of(n) if kind == "Tensor" else n for n, kind in zip((0.0, 1.0), kinds)], 5)
            ],
            errors=[
                (
                    lambda name=_name: getattr(tg, name)(zeros(2), zeros(2), 1),
                    RuntimeError,
                    "only supports 0-dimensional start and end tensors",
                )
            ],
            doc=f"{_name} between bounds of which one or both are tensors of one element.",
        )
