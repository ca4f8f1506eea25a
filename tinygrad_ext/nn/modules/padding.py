"""Padding of the last one, two or three dimensions: by a constant, a mirror, the edge, or from the other end."""

from .. import functional as F
from ..module import Module
from .utils import n_tuple

__all__ = [
    f"{kind}Pad{n}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for n in (1, 2, 3)
]


class _Pad(Module):
    """Pads the last ``dims`` dimensions; the input has a dimension of channels more, and may have one of batches."""

    dims, mode = 0, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = n_tuple(padding, 2 * self.dims)

    def forward(self, input):
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Pads with a value."""

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """Pads with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    """Pads with the mirror image, in which the edge is not repeated."""

    mode = "reflect"


class _ReplicationPad(_Pad):
    """Pads with the edge."""

    mode = "replicate"


class _CircularPad(_Pad):
    """Pads with what stands at the other end."""

    mode = "circular"

    def forward(self, input):
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


def _class(base, dims):
    name = f"{base.__name__.strip('_')}{dims}d"
    pairs = ", ".join(("left", "right", "top", "bottom", "front", "back")[: 2 * dims])
    more = ", value: what is put there." if base is _ConstantPad else "."
    doc = (
        f"{base.__doc__[:-1]}: {dims} dimension{'s' * (dims > 1)} of an input (N, C, ...) or (C, ...).\n\n"
        f"    Args:\n        padding: one width for all sides, or ({pairs}){more}\n    "
    )
    return type(name, (base,), {"dims": dims, "__doc__": doc, "__module__": __name__})


for _dims in (1, 2, 3):
    for _base in (_CircularPad, _ConstantPad, _ReflectionPad, _ReplicationPad, _ZeroPad):
        _made = _class(_base, _dims)
        globals()[_made.__name__] = _made
