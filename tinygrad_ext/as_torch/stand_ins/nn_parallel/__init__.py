"""torch.nn.parallel: with one device a model in parallel is the model."""

from tinygrad_ext.nn import DataParallel, Module

from .. import absent

__all__ = ["DataParallel", "DistributedDataParallel"]
globals().update(
    absent.functions(
        "nn.parallel",
        "parallel_apply replicate scatter gather data_parallel",
        "there is one device, the cpu: call the module",
    )
)


class DistributedDataParallel(Module):
    """Refused when it is made: there is one process."""

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError(
            "torch.nn.parallel.DistributedDataParallel: there is one process here; train the module itself"
        )
