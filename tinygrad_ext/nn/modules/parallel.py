"""With one device a model in parallel is the model."""

from ..module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """A module that hands its input on, as PyTorch's does where there is one device.

    Args:
        module: the model; its parameters have names that begin with ``module.``.
        device_ids: accepted, and not looked at.
        output_device: accepted, and not looked at.
        dim: kept; the input is not split.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = []

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
