"""Padding of the last one, two or three dimensions: by a constant, a mirror, the edge, or from the other end."""

from .. import functional as F
from ..module import Module
from .utils import n_tuple

__all__ = [
    f"{kind}Pad{n}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for n in (1, 2, 3)
]


class _Pad(Module):
    """Pads the last ``dims`` dimensions; the input has a dimension of channels more, and may have one of batches."""

    dims = 0

    def __init__(self, padding):
        super().__init__()
        self.padding = n_tuple(padding, 2 * self.dims)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    """Pads with a value."""

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_Pad):
    """Pads with the mirror image, in which the edge is not repeated."""

    def forward(self, input):
        return F.pad(input, self.padding, "reflect")


class _ReplicationPadNd(_Pad):
    """Pads with the edge."""

    def forward(self, input):
        return F.pad(input, self.padding, "replicate")


class _CircularPadNd(_Pad):
    """Pads with what stands at the other end."""

    def forward(self, input):
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)"
            )
        return F.pad(input, self.padding, "circular")


def _class(base, dims, name, what):
    pairs = ", ".join(("left", "right", "top", "bottom", "front", "back")[: 2 * dims])
    more = ", value: what is put there." if base is _ConstantPadNd else "."
    doc = (
        f"{what[:-1]}: {dims} dimension{'s' * (dims > 1)} of an input (N, C, ...) or (C, ...).\n\n"
        f"    Args:\n        padding: one width for all sides, or ({pairs}){more}\n    "
    )
    return type(name, (base,), {"dims": dims, "__doc__": doc, "__module__": __name__})


def _zero(constant, dims):
    def __init__(self, padding):
        super(made, self).__init__(padding, 0.0)

    made = _class(constant, dims, f"ZeroPad{dims}d", "Pads with zeros.")
    made.__init__ = __init__
    made.extra_repr = _Pad.extra_repr
    return made


for _dims in (1, 2, 3):
    for _base in (_CircularPadNd, _ConstantPadNd, _ReflectionPadNd, _ReplicationPadNd):
        _name = f"{_base.__name__[1:-2]}{_dims}d"
        globals()[_name] = _class(_base, _dims, _name, _base.__doc__)
    globals()[f"ZeroPad{_dims}d"] = _zero(globals()[f"ConstantPad{_dims}d"], _dims)
