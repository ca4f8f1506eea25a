"""torch.distributed.tensor: tensors are whole."""

from . import absent

_WHY = "there is no communication between processes here"
globals().update(
    absent.functions("distributed.tensor", "distribute_tensor distribute_module implicit_replication", _WHY)
)
globals().update(absent.types("distributed.tensor", "DTensor Placement Replicate Shard Partial DeviceMesh", _WHY))
