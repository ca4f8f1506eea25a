"""torch.nn.parallel: with one device a model in parallel is the model."""

from tinygrad_ext.nn import DataParallel

from .. import absent
from ..nn_parallel_distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
globals().update(
    absent.functions(
        "nn.parallel",
        "parallel_apply replicate scatter gather data_parallel",
        "there is one device, the cpu: call the module",
    )
)
