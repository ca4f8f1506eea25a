"""torch.nn.parallel: with one device a model in parallel is the model."""

from tinygrad_ext.nn import Module

from . import absent

__all__ = ["DataParallel", "DistributedDataParallel"]
globals().update(
    absent.functions(
        "nn.parallel",
        "parallel_apply replicate scatter gather data_parallel",
        "there is one device, the cpu: call the module",
    )
)


class DataParallel(Module):
    """A module that hands its input on, as PyTorch's does where there is one device.

    Args:
        module: the model.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.dim, self.module, self.device_ids = dim, module, []

    def forward(self, *inputs, **kwargs):
        """What the model makes of it."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Refused when it is made: there is one process."""

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError(
            "torch.nn.parallel.DistributedDataParallel: there is one process here; train the module itself"
        )
