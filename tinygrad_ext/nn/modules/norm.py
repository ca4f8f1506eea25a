"""Normalisation layers."""

import numbers

import tinygrad_ext as tg

from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "CrossMapLRN2d",
    "GroupNorm",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What batch norms and instance norms share: scale, offset and running statistics.

    Version 2 of the state has ``num_batches_tracked``.
    """

    _version = 2

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True,
        device=None, dtype=None, *, bias=True,
    ):  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        where = {"device": device, "dtype": dtype}
        for name, there in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(tg.empty(num_features, **where)) if there else None)
        self._make_statistics(device, dtype)
        self.reset_parameters()

    def _make_statistics(self, device, dtype):
        running = {"running_mean": None, "running_var": None, "num_batches_tracked": None}
        if self.track_running_stats:
            running["running_mean"] = tg.zeros(self.num_features, device=device, dtype=dtype)
            running["running_var"] = tg.ones(self.num_features, device=device, dtype=dtype)
            running["num_batches_tracked"] = tg.tensor(0, device=device, dtype=tg.int64)
        for name, tensor in running.items():
            self.register_buffer(name, tensor)

    def reset_running_stats(self):
        """Start the running statistics anew."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Set scale to one, offset to zero, and start the statistics anew."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """What the batch norms share; a subclass has ``input_dims``.

    Args:
        num_features: size of the channel dimension.
        eps: added to the variance.
        momentum: weight of the new batch in the running statistics; None for their plain average.
        affine: whether there are a learned scale and offset.
        track_running_stats: whether to keep running statistics, which ``eval`` then uses.
    """

    def _check_input_dim(self, input):
        if input.dim() not in self.input_dims:
            wanted = " or ".join(f"{n}D" for n in self.input_dims)
            raise ValueError(f"{type(self).__name__}: expected {wanted} input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or self.running_mean is None
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    __doc__ = "Batch norm of ``(N, C)`` or ``(N, C, L)``.\n\n" + _BatchNorm.__doc__.partition("\n\n")[2]
    input_dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = "Batch norm of ``(N, C, H, W)``.\n\n" + _BatchNorm.__doc__.partition("\n\n")[2]
    input_dims = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = "Batch norm of ``(N, C, D, H, W)``.\n\n" + _BatchNorm.__doc__.partition("\n\n")[2]
    input_dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm of ``(N, C, ...)`` for a model that several processes train; here there is one, and it is plain.

    Args:
        num_features, eps, momentum, affine, track_running_stats: as for BatchNorm1d.
        process_group: kept, for code that hands one on.
    """

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
        device=None, dtype=None, *, bias=True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm: expected at least 2D input (got {input.dim()}D input)")
        if input.shape[1] == 0:
            raise ValueError(
                f"SyncBatchNorm: number of input channels should be non-zero (got input of {list(input.shape)})"
            )

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Return ``module`` with each batch norm in it replaced by one of this class, on the same tensors."""
        result = module
        if isinstance(module, _BatchNorm):
            options = (module.eps, module.momentum, module.affine, module.track_running_stats, process_group)
            result = SyncBatchNorm(module.num_features, *options, bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class LayerNorm(Module):
    """Bring the last dimensions of each sample to mean 0 and variance 1, then scale and offset.

    Args:
        normalized_shape: sizes of those dimensions.
        eps: added to the variance.
        elementwise_affine: whether there are a learned scale and, with ``bias``, an offset.
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, there in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = tg.empty(self.normalized_shape, device=device, dtype=dtype) if there else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self):
        """Set scale to one and offset to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalise each sample over groups of channels, then scale and offset per channel.

    Args:
        num_groups: number of groups; divides ``num_channels``.
        num_channels: size of the channel dimension.
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, there in (("weight", affine), ("bias", affine and bias)):
            values = tg.empty(num_channels, device=device, dtype=dtype) if there else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    reset_parameters = LayerNorm.reset_parameters

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide the last dimensions of each sample by the root of their mean square, then scale.

    Args:
        normalized_shape: sizes of those dimensions.
        eps: added to the mean square; None for the distance from 1 to the next number of the dtype.
        elementwise_affine: whether there is a learned scale.
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        values = tg.empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self):
        """Set the scale to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class _ResponseNorm(Module):
    def __init__(self, size, alpha, beta, k):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """Divide by ``(k + alpha m) ** beta``, m the mean square of ``size`` neighbouring channels of ``(N, C, ...)``."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """`LocalResponseNorm` of ``(N, C, H, W)`` as Torch 7 had it: ``x / (k + alpha / size * squares) ** beta``.

    ``squares`` is the sum over the channels that are nearer than ``(size + 1) // 2``, and, as in PyTorch, over the
    first channel wherever it stands. The gradient is the derivative of that, which PyTorch's is not.
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        square = input * input
        reach = int((self.size - 1) / 2)
        around = F.pad(square, (0, 0, 0, 0, reach, reach)).unsqueeze(1)  # a window may be longer than the channels
        near = F.avg_pool3d(around, (2 * reach + 1, 1, 1), 1, divisor_override=1).squeeze(1)
        beyond = (tg.arange(input.shape[1], device=input.device) > reach).view(1, -1, 1, 1)
        squares = near + square[:, :1] * beyond
        return input * (squares * (self.alpha / self.size) + self.k) ** -self.beta
