"""Groups of one process: opened, asked about and closed; a group of more is refused.

What a process can rightly answer alone is answered, and what asks for more is refused where the group would be opened,
so that no collective ever leaves out what another process holds. No address is listened at and no file written: there
is nobody to meet.
"""

import enum
import os

from tinygrad_ext.futures import Future as _Future
from tinygrad_ext.utils.data import distributed as _sampler

WHY = "there is no communication between processes here; a group has one process"
_NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."
STORES = "Store TCPStore FileStore"
NAMES = (
    "HashStore Backend ReduceOp ProcessGroup GroupMember group Work init_process_group "
    "destroy_process_group is_available is_initialized is_gloo_available is_nccl_available is_mpi_available "
    "is_ucc_available is_xccl_available is_torchelastic_launched get_rank get_world_size get_backend "
    "get_node_local_rank get_process_group_ranks get_global_rank get_group_rank new_group new_subgroups"
)


class Backend(str):
    """The name of a backend, in small letters."""

    GLOO, NCCL, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "xccl", "undefined"

    def __new__(cls, name):
        return super().__new__(cls, name.lower())


class ReduceOp(enum.Enum):
    """How a reduction joins what the processes hold."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


ReduceOp.RedOpType = ReduceOp


class ProcessGroup:
    """The one process, as a group."""

    def __init__(self, name):
        self.group_name, self.bound_device_id = name, None

    def rank(self):
        """0."""
        return 0

    def size(self):
        """1."""
        return 1

    def name(self):
        """The backend's name."""
        return "gloo"


class GroupMember:
    """The group of all processes, and what stands for a group this one is not in."""

    WORLD = None
    NON_GROUP_MEMBER = -100


group = GroupMember


class Work:
    """A collective that is done."""

    def __init__(self, tensors):
        self._tensors = tensors

    def wait(self, timeout=None):
        """True."""
        return True

    is_completed = is_success = wait

    def exception(self):
        """None."""

    def result(self):
        """The tensors."""
        return list(self._tensors)

    def get_future(self):
        """A future that holds the tensors."""
        future = _Future()
        future.set_result(self.result())
        return future


class HashStore:
    """Values in bytes by name, for the one process that holds the store."""

    def __init__(self):
        self._held = {}

    def set(self, key, value):
        """Store a text or bytes."""
        self._held[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        """The bytes; RuntimeError where there are none, for nobody else could bring them."""
        if key not in self._held:
            raise RuntimeError(f"HashStore.get: there is no {key!r}, and no other process that could set it")
        return self._held[key]

    def add(self, key, amount):
        """Add to a number and return it; one that is not there yet is zero."""
        total = int(self._held.get(key, b"0")) + amount
        self.set(key, str(total))
        return total

    def compare_set(self, key, expected, desired):
        """Set what is as expected, or not there where nothing is; what is held after it."""
        if self._held.get(key, b"") == expected.encode():
            self.set(key, desired)
        return self._held.get(key, expected.encode())

    def wait(self, keys, timeout=None):
        """Return where all are there; RuntimeError otherwise."""
        for key in keys:
            self.get(key)

    def check(self, keys):
        """Whether all are there."""
        return all(key in self._held for key in keys)

    def delete_key(self, key):
        """Whether there was one to delete."""
        return self._held.pop(key, None) is not None

    def num_keys(self):
        """How many there are."""
        return len(self._held)

    def set_timeout(self, timeout):
        """Do nothing: nothing is waited for."""


def _backend(name):
    """Check the name of a backend, or of one for each device: "cpu:gloo,cuda:nccl"."""
    name = "gloo" if name is None else str(name).lower()
    for part in name.split(","):
        device, _, part = part.rpartition(":")
        if device in ("", "cpu") and part in ("nccl", "mpi", "ucc", "xccl"):
            raise RuntimeError(f"Distributed package doesn't have {part.upper()} built in: pass backend='gloo'")
        if part not in ("gloo", "undefined", "nccl", "mpi", "ucc", "xccl"):
            raise AssertionError(f"Unknown backend type {part}: pass backend='gloo'")


def _told(method, name, given):
    """A number that init_process_group was given, or that the environment has."""
    if given != -1:
        return int(given)
    scheme = method.partition("://")[0]
    if scheme != "env":
        word = "rank" if name == "RANK" else "world_size"
        raise ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {word} parameter missing")
    if name not in os.environ:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: "
            f"environment variable {name} expected, but not set"
        )
    return int(os.environ[name])


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
):
    """Open the group of the one process; the arguments, or RANK and WORLD_SIZE, have to say that it is alone."""
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    _backend(backend)
    if store is not None and (rank < 0 or world_size < 1):
        raise AssertionError("rank and world_size must be given, and world_size be positive, if using store")
    method = init_method or "env://"
    rank, world_size = _told(method, "RANK", rank), _told(method, "WORLD_SIZE", world_size)
    if world_size != 1:
        raise NotImplementedError(
            f"torch.distributed.init_process_group: world_size is {world_size}, and {WHY}: run one process, and"
            " pass world_size=1 and rank=0"
        )
    if rank != 0:
        raise RuntimeError(f"init_process_group: rank is {rank}, expected 0, the only one where world_size is 1")
    _open(ProcessGroup(group_name or "0"))


def _open(world):
    """Say that there is a group, or None, to those who ask."""
    GroupMember.WORLD = world
    _sampler.place = world and (world.size(), world.rank())


def destroy_process_group(group=None):
    """Close the group of all processes, or one that new_group gave."""
    if group is None and GroupMember.WORLD is None:
        raise AssertionError("Process group cannot be None: no process group has been initialized")
    if group is None or group is GroupMember.WORLD:
        _open(None)


def is_available():
    """True: a group of one process can be opened."""
    return True


def is_initialized():
    """Whether a group is open."""
    return GroupMember.WORLD is not None


def is_gloo_available():
    """True: its name is the one that a group has."""
    return True


def is_nccl_available():
    """False."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_torchelastic_launched = is_nccl_available


def member(group):
    """The group that is meant; None where this process is not in it."""
    if GroupMember.WORLD is None:
        raise ValueError(_NO_GROUP)
    return GroupMember.WORLD if group is None else None if group == GroupMember.NON_GROUP_MEMBER else group


def _get_default_group():
    """The group of all processes."""
    return member(None)


def get_rank(group=None):
    """0; -1 of a group that the process is not in."""
    return 0 if member(group) else -1


def get_world_size(group=None):
    """1; -1 of a group that the process is not in."""
    return 1 if member(group) else -1


def get_backend(group=None):
    """'gloo'."""
    if not member(group):
        raise ValueError("Invalid process group specified")
    return Backend("gloo")


def get_node_local_rank(fallback_rank=None):
    """LOCAL_RANK of the environment, or the number given in its place."""
    if "LOCAL_RANK" not in os.environ and fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Pass fallback_rank to get_node_local_rank.")
    return int(os.environ.get("LOCAL_RANK", fallback_rank))


def get_process_group_ranks(group):
    """[0]."""
    return [0] if member(group) else []


def get_global_rank(group, group_rank):
    """The rank among all processes of one in a group."""
    return root(group_rank, "group_rank")


def get_group_rank(group, global_rank):
    """The rank in a group of one of all processes."""
    return root(global_rank, "global_rank")


def new_group(
    ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None, **kwargs
):
    """A group of the process; of no ranks the mark of a group that it is not in."""
    member(None)
    _backend(backend)
    for rank in ranks or ():
        if rank != 0:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to 0 (world_size=1)")
    return GroupMember.NON_GROUP_MEMBER if ranks is not None and not list(ranks) else ProcessGroup(group_desc or "1")


def new_subgroups(group_size=None, group=None, **kwargs):
    """The group of the process, and all groups."""
    if group_size not in (None, 1):
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size (1)")
    made = new_group([0])
    return made, [made]


def root(rank, name):
    """Check a rank that has to be this process's."""
    if rank is None:
        raise ValueError(f"Must specify global_rank or group_rank: {name} is missing, pass 0")
    if rank != 0:
        raise RuntimeError(f"{name} is {rank}, expected 0: the group has one process")
    return rank


def done(group, async_op, tensors):
    """What a collective of the group returns when it is done."""
    return Work(tensors) if member(group) and async_op else None
