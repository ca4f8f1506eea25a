"""torch.distributed: there is one process; asking says so, communication is refused."""

from types import SimpleNamespace

from . import absent

_WHY = "there is no communication between processes here; is_available() is False"
globals().update(
    absent.functions(
        "distributed",
        "init_process_group new_group all_reduce all_gather all_gather_object broadcast broadcast_object_list reduce "
        "reduce_scatter scatter gather send recv isend irecv barrier all_to_all all_gather_into_tensor "
        "reduce_scatter_tensor get_rank get_world_size get_backend monitored_barrier gather_object scatter_object_list",
        _WHY,
    )
)
globals().update(absent.types("distributed", "ProcessGroup Store TCPStore FileStore HashStore Work Backend", _WHY))
ReduceOp = SimpleNamespace(
    SUM="sum", PRODUCT="product", MIN="min", MAX="max", AVG="avg", BAND="band", BOR="bor", BXOR="bxor"
)
group = SimpleNamespace(WORLD=None)
GroupMember = SimpleNamespace(WORLD=None, NON_GROUP_MEMBER=object())


def is_available():
    """False."""
    return False


def is_initialized():
    """False."""
    return False


def destroy_process_group(group=None):
    """Do nothing: there is none."""


is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_available
