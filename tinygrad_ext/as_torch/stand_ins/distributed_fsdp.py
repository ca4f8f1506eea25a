"""torch.distributed.fsdp: models are whole."""

from . import absent

_WHY = "there is no communication between processes here"
globals().update(absent.functions("distributed.fsdp", "fully_shard", _WHY))
globals().update(
    absent.types(
        "distributed.fsdp",
        "FullyShardedDataParallel FSDPModule MixedPrecision MixedPrecisionPolicy CPUOffload",
        _WHY,
    )
)
