"""Normalisation of each channel of each sample by itself."""

import warnings

from .. import functional as F
from .norm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """What they share; a subclass has ``dims``, how many dimensions a channel has.

    Args:
        num_features: size of the channel dimension.
        eps: added to the variance.
        momentum: weight of the new batch in the running statistics.
        affine: whether there are a learned scale and offset.
        track_running_stats: whether to keep running statistics, which ``eval`` then uses.
    """

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False,
        device=None, dtype=None, *, bias=True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input):
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)"
            )

    def _get_no_batch_dim(self):
        """How many dimensions a sample has."""
        return self.dims + 1

    def forward(self, input):
        self._check_input_dim(input)
        batched = input if input.dim() == self.dims + 2 else input.unsqueeze(0)
        self._check_channels(batched.shape[1], input.dim() - self.dims - 1)
        result = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result if batched is input else result.squeeze(0)

    def _check_channels(self, channels, dim):
        if channels == self.num_features:
            return
        told = f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: {channels}."
        if self.affine:
            raise ValueError(f"{type(self).__name__}: {told}")
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
            stacklevel=3,
        )


def _class(dims, shape):
    doc = f"Instance norm of ``(N, C, {shape})`` or ``(C, {shape})``.\n\n" + _InstanceNorm.__doc__.partition("\n\n")[2]
    return type(f"InstanceNorm{dims}d", (_InstanceNorm,), {"dims": dims, "__doc__": doc, "__module__": __name__})


InstanceNorm1d, InstanceNorm2d, InstanceNorm3d = _class(1, "L"), _class(2, "H, W"), _class(3, "D, H, W")
