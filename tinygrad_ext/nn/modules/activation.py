"""Activations. Each one is a module form of the function of the same name in `functional`."""

import warnings

import tinygrad_ext as tg

from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .attention import MultiheadAttention

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Shown(Module):
    """A module whose printed form lists the attributes named in ``shown``; ``inplace`` only when set."""

    shown = ()

    def extra_repr(self):
        parts = [f"{name}={getattr(self, name)}" for name in self.shown]
        if getattr(self, "inplace", False):
            parts.append("inplace=True")
        return ", ".join(parts)


class _MaybeInplace(_Shown):
    """An activation whose only argument is ``inplace``: write the result over the input."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class ReLU(_MaybeInplace):
    """``max(x, 0)``."""

    def forward(self, input):
        # Two calls, because the common one is measurably faster without a keyword.
        return F.relu(input, inplace=True) if self.inplace else F.relu(input)


class RReLU(_Shown):
    """``x`` where it is positive, else ``x`` times a slope.

    Args:
        lower, upper: the slope is drawn between them while training, for each element; else it is their mean.
        inplace: write the result over the input.
    """

    shown = ("lower", "upper")

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class SELU(_MaybeInplace):
    """Scaled ELU with the constants of self-normalising networks."""

    def forward(self, input):
        return F.selu(input, self.inplace)


class SiLU(_MaybeInplace):
    """``x * sigmoid(x)``."""

    def forward(self, input):
        return F.silu(input, inplace=True) if self.inplace else F.silu(input)


class Mish(_MaybeInplace):
    """``x * tanh(softplus(x))``."""

    def forward(self, input):
        return F.mish(input, inplace=self.inplace)


class Hardswish(_MaybeInplace):
    """``x * relu6(x + 3) / 6``."""

    def forward(self, input):
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_MaybeInplace):
    """``relu6(x + 3) / 6``."""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)


class GELU(Module):
    """``x * Phi(x)`` with the normal distribution function Phi.

    Args:
        approximate: ``"none"``, or ``"tanh"`` for the cheaper formula with tanh.
    """

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input):
        return tg.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input):
        return tg.tanh(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))`` without overflow."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input):
        return F.softsign(input)


class Softmax(_Shown):
    """``exp(x) / sum(exp(x))`` along ``dim``."""

    shown = ("dim",)

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.softmax(input, self.dim)


class LogSoftmax(_Shown):
    """Logarithm of the softmax along ``dim``."""

    shown = ("dim",)

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.log_softmax(input, self.dim)


class LeakyReLU(_Shown):
    """``x`` where positive, else ``negative_slope * x``."""

    shown = ("negative_slope",)

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Shown):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""

    shown = ("alpha",)

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)


class Softplus(_Shown):
    """``log(1 + exp(beta * x)) / beta``; linear where ``beta * x`` is above ``threshold``."""

    shown = ("beta", "threshold")

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)


class Hardtanh(_Shown):
    """``x`` cut to the range from ``min_val`` to ``max_val``."""

    shown = ("min_val", "max_val")

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        if min_value is not None or max_value is not None:
            warnings.warn("min_value and max_value are deprecated: say min_val, max_val", FutureWarning, stacklevel=2)
            min_val = min_val if min_value is None else min_value
            max_val = max_val if max_value is None else max_value
        if max_val <= min_val:
            raise AssertionError(f"Hardtanh: max_val ({max_val}) must be larger than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """``min(max(x, 0), 6)``."""

    shown = ()

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input):
        return F.relu6(input, self.inplace)


class GLU(_Shown):
    """First half of ``dim`` times the sigmoid of the second half."""

    shown = ("dim",)

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)


class PReLU(_Shown):
    """``x`` where positive, else a learned slope times ``x``.

    Args:
        num_parameters: one slope, or one per channel.
        init: the slope to start with.
    """

    shown = ("num_parameters",)

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(tg.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set every slope to ``init``."""
        with tg.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)


class CELU(_Shown):
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""

    shown = ("alpha",)

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)


class Hardshrink(Module):
    """The elements beyond ``lambd`` on either side; zero in place of the others."""

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        return f"{self.lambd}"


class Softshrink(Module):
    """Elements brought towards zero by ``lambd``, zero where they are within it."""

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.softshrink(input, self.lambd)

    def extra_repr(self):
        return f"{self.lambd}"


class Tanhshrink(Module):
    """``x - tanh(x)``."""

    def forward(self, input):
        return F.tanhshrink(input)


class Threshold(_Shown):
    """Elements above ``threshold``; ``value`` in place of the others."""

    shown = ("threshold", "value")

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softmin(_Shown):
    """``exp(-x) / sum(exp(-x))`` along ``dim``."""

    shown = ("dim",)

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of an image (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input has another number of dimensions.
    """

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
