"""Filling tensors with starting values.

Every function changes its tensor in place, outside autograd, and returns it. The random ones
draw in PyTorch's order, so that a seeded model starts from the same numbers.
"""

import functools
import math
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.overridable import overridable as _overridable
from tinygrad_ext.errors import refuse_unknown

_LINEAR_LIKE = ("linear", "conv1d", "conv2d", "conv3d", "sigmoid") + tuple(f"conv_transpose{n}d" for n in (1, 2, 3))
# 3/4 is the empirical gain for selu from its fixed point analysis; the others are 1/rms of the slope.
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


@boundary
def calculate_gain(nonlinearity, param=None):
    """Return the factor that keeps the variance through a nonlinearity.

    Args:
        nonlinearity: its name: ``linear``, ``conv2d``, ``sigmoid``, ``tanh``, ``relu``, ``leaky_relu``, ``selu``.
        param: the negative slope for ``leaky_relu`` (0.01).

    Raises:
        ValueError: an unknown name, or a slope that is not a number.
    """
    if nonlinearity in _LINEAR_LIKE:
        return 1
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        known = ", ".join((*_LINEAR_LIKE, *_GAINS, "leaky_relu"))
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}; expected one of {known}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


@_overridable
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill from the uniform distribution on [a, b)."""
    with tg.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_overridable
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill from the normal distribution."""
    with tg.no_grad():
        return tensor.normal_(mean, std, generator=generator)


@_overridable
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill from the normal distribution restricted to [a, b], by drawing anew what falls outside."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_; the values may be distributed wrongly.",
            stacklevel=2,
        )
    if tensor.device.type == "meta":
        return tensor
    below_b, below_a = ((1 + math.erf((edge - mean) / std / math.sqrt(2.0))) / 2 for edge in (b, a))
    with tg.no_grad():
        # Where a normal draw would mostly miss the range, uniform draws in it are thinned out instead.
        draw = _draw_normal_in if below_b - below_a > 0.3 else _draw_thinned_uniform
        return tensor.copy_(draw(tensor, mean, std, a, b, generator))


def _draw_normal_in(like, mean, std, a, b, generator):
    # The edges in the tensor's own precision: a draw equal to the rounded edge is inside.
    a, b = (tg.tensor(edge, dtype=like.dtype).item() for edge in (a, b))
    drawn = tg.empty_like(like).normal_(mean, std, generator=generator)
    outside = (drawn < a) | (drawn > b)
    while bool(outside.any()):
        drawn = tg.where(outside, tg.empty_like(like).normal_(mean, std, generator=generator), drawn)
        outside = (drawn < a) | (drawn > b)
    return drawn


def _draw_thinned_uniform(like, mean, std, a, b, generator):
    """Accept a uniform draw with the probability of its density over the highest density in [a, b]."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    drawn = tg.empty_like(like)
    open_places = tg.ones_like(like, dtype=tg.bool)
    while bool(open_places.any()):
        candidates = tg.empty_like(like).uniform_(a, b, generator=generator)
        drawn = tg.where(open_places, candidates, drawn)
        log_density = ((candidates - mean) / std) ** 2 * -0.5 - peak
        refused = tg.empty_like(like).uniform_(generator=generator).log() > log_density
        open_places = open_places & refused
    return drawn


@_overridable
def constant_(tensor, val):
    """Fill with ``val``."""
    with tg.no_grad():
        return tensor.fill_(val)


@_overridable
def ones_(tensor):
    """Fill with one."""
    return constant_(tensor, 1.0)


@_overridable
def zeros_(tensor):
    """Fill with zero."""
    return constant_(tensor, 0.0)


@_overridable
def eye_(tensor):
    """Fill a matrix with the identity."""
    if tensor.dim() != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.dim()}")
    with tg.no_grad():
        return tensor.copy_(tg.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@_overridable
def dirac_(tensor, groups=1):
    """Fill a convolution's weight so that it passes its input on, as many channels as there are."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(f"Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.dim()}")
    out_channels, in_channels, *window = tensor.shape
    if out_channels % groups:
        raise ValueError(f"dim 0 must be divisible by groups, got {out_channels} and {groups}")
    per_group = out_channels // groups
    middle = tuple(size // 2 for size in window)
    with tg.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, in_channels)):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """Return how many inputs feed one output and how many outputs one input feeds."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, "
            f"got shape {tuple(tensor.shape)}"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _calculate_correct_fan(tensor, mode):
    modes = ("fan_in", "fan_out")
    mode = mode.lower()
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(modes)}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


@_overridable
def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Fill uniformly so that the variance is ``2 * gain² / (fan_in + fan_out)`` (Glorot and Bengio, 2010)."""
    edge = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -edge, edge, generator)


@_overridable
def xavier_normal_(tensor, gain=1.0, generator=None):
    """Fill normally with the variance ``2 * gain² / (fan_in + fan_out)`` (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor, gain):
    return gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))


@_overridable
def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill uniformly with standard deviation ``gain / sqrt(fan)`` (He et al., 2015).

    Args:
        a: negative slope, for ``leaky_relu``.
        mode: ``fan_in`` keeps the variance of the forward pass, ``fan_out`` that of the backward pass.
        nonlinearity: see `calculate_gain`.
    """
    if 0 in tensor.shape:
        return _nothing_to_fill(tensor)
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    edge = math.sqrt(3.0) * std
    return uniform_(tensor, -edge, edge, generator)


@_overridable
def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill normally with standard deviation ``gain / sqrt(fan)``; arguments as `kaiming_uniform_`."""
    if 0 in tensor.shape:
        return _nothing_to_fill(tensor)
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def _nothing_to_fill(tensor):
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return tensor


@_overridable
def uniform_within_fan_in_(tensor, weight):
    """Fill uniformly in ±1/sqrt(fan_in of ``weight``), as the layers start their bias."""
    fan_in, _ = _calculate_fan_in_and_fan_out(weight)
    if fan_in > 0:
        uniform_(tensor, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))
    return tensor


@_overridable
def orthogonal_(tensor, gain=1, generator=None):
    """Fill with ``gain`` times a matrix of orthonormal rows or columns (Saxe et al., 2013).

    Raises:
        ValueError: fewer than two dimensions; more than two count as columns.
        NotImplementedError: this build has no ``linalg.qr``.
    """
    if tensor.dim() < 2:
        raise ValueError(f"Only tensors with 2 or more dimensions are supported, got {tensor.dim()}")
    if not hasattr(tg.linalg, "qr"):
        raise NotImplementedError("orthogonal_ needs linalg.qr, which this build lacks; use xavier_uniform_ instead")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    drawn = tg.empty((rows, columns), dtype=tensor.dtype, device=tensor.device)
    drawn.normal_(0, 1, generator=generator)
    with tg.no_grad():
        q, r = tg.linalg.qr(drawn.t() if rows < columns else drawn)
        # The signs of r's diagonal make the choice of q unique, and so uniformly distributed.
        q = q * r.diagonal().sign()
        if rows < columns:
            q = q.t()
        return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


@_overridable
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix normally, then zero the share ``sparsity`` of each column (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.dim()}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with tg.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[tg.randperm(rows)[:zeros], column] = 0
    return tensor


def _older(name):
    """The name without an underscore, from the time before functions in place had one."""
    function = globals()[name + "_"]

    @boundary
    @functools.wraps(function)
    def older(*args, **kwargs):
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"The older name of `{name}_`."
    return older


uniform, normal, constant, eye, dirac = (_older(n) for n in ("uniform", "normal", "constant", "eye", "dirac"))
xavier_uniform, xavier_normal = _older("xavier_uniform"), _older("xavier_normal")
kaiming_uniform, kaiming_normal = _older("kaiming_uniform"), _older("kaiming_normal")
orthogonal, sparse = _older("orthogonal"), _older("sparse")

__getattr__ = refuse_unknown(__name__)
