"""torch.distributed.rpc: there is no other process to call."""

from . import absent

_WHY = "there is no communication between processes here"
globals().update(
    absent.functions(
        "distributed.rpc",
        "init_rpc rpc_sync rpc_async remote shutdown get_worker_info",
        _WHY,
    )
)
globals().update(absent.types("distributed.rpc", "RRef WorkerInfo", _WHY))
