"""The collectives of a group of one process: each checks what it is given, and copies."""

import pickle

from tinygrad_ext.autograd import no_grad
from tinygrad_ext.core.data.tensor import Tensor

from .distributed_group import ReduceOp, done, member, root

NAMES = (
    "all_reduce reduce broadcast all_gather all_gather_into_tensor gather scatter reduce_scatter reduce_scatter_tensor "
    "all_to_all all_to_all_single all_gather_object gather_object broadcast_object_list scatter_object_list barrier "
    "monitored_barrier send recv isend irecv"
)
_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def _tensor(name, value):
    """Check that it is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor, got {type(value).__name__}"
        )
    return value


def _one(name, values):
    """The tensor of a list that has one for each process."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]")
    return _tensor(name, _single(name, values)[0])


def _reducible(op, tensor):
    """Check that elements of this dtype can be joined so."""
    inexact = tensor.is_floating_point() or tensor.is_complex()
    if op in _BITS and inexact:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype {tensor.dtype}: pass integers")
    if op is ReduceOp.AVG and not inexact:
        raise RuntimeError(f"ReduceOp.AVG of {tensor.dtype}: a mean is a float; pass a floating point tensor")


def _copy(name, target, source, *, shaped=True):
    """Put the elements of a tensor into another, of which no gradient is kept."""
    if target.dtype != source.dtype:
        raise ValueError(
            f"Invalid usage of tensors with different dtypes: {name} is {target.dtype}, what it gets {source.dtype}"
        )
    if tuple(target.shape) != tuple(source.shape) if shaped else target.numel() != source.numel():
        raise RuntimeError(f"{name}: invalid tensor size (expected {tuple(source.shape)}, got {tuple(target.shape)})")
    if target.requires_grad and target.is_leaf:
        raise RuntimeError(
            f"{name} is a leaf Variable that requires grad, and the collective writes to it: pass its detach() or data"
        )
    with no_grad():
        target.copy_(source.reshape(target.shape))
    return target


def _source(rank, group_rank, name, *, needed=False):
    """Check the rank a collective starts from or ends at, given among all processes or in the group."""
    given = group_rank if rank is None else rank
    root(0 if given is None and not needed else given, name)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Leave the tensor: the sum, product or least of one is itself."""
    _reducible(op, _tensor("tensor", tensor))
    return done(group, async_op, (tensor,))


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Leave the tensor."""
    _reducible(op, _tensor("tensor", tensor))
    if member(group):
        _source(dst, group_dst, "dst", needed=True)
    return done(group, async_op, (tensor,))


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Leave the tensor, which comes from this process."""
    _tensor("tensor", tensor)
    if member(group):
        _source(src, group_src, "src", needed=True)
    return done(group, async_op, (tensor,))


def _filled(group, async_op, name, target, source, *, shaped=True):
    """Copy, where the process is in the group."""
    if member(group):
        _copy(name, _tensor(name, target), _tensor("tensor", source), shaped=shaped)
    return done(group, async_op, (target,))


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copy the tensor into that of the list."""
    return _filled(group, async_op, "tensor_list", _one("tensor_list", tensor_list), tensor)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Copy one tensor into another, which may have a dimension for the processes."""
    return _filled(group, async_op, "output_tensor", output_tensor, input_tensor, shaped=False)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Copy the tensor into that of the list."""
    if member(group):
        _source(dst, group_dst, "dst")
        if gather_list is None:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _copy("gather_list", _one("gather_list", gather_list), _tensor("tensor", tensor))
    return done(group, async_op, gather_list)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Copy the tensor of the list."""
    if member(group):
        _source(src, group_src, "src")
        if scatter_list is None:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _copy("tensor", _tensor("tensor", tensor), _one("scatter_list", scatter_list))
    return done(group, async_op, (tensor,))


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Copy the tensor of the list."""
    _reducible(op, _one("input_list", input_list))
    return _filled(group, async_op, "output", output, input_list[0])


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Copy one tensor into another."""
    _reducible(op, _tensor("input", input))
    return _filled(group, async_op, "output", output, input, shaped=False)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Copy the tensor of one list into that of the other."""
    given = _one("input_tensor_list", input_tensor_list)
    return _filled(group, async_op, "output_tensor_list", _one("output_tensor_list", output_tensor_list), given)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Copy one tensor into another; split sizes are that of the first dimension."""
    for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
        if sizes and list(sizes) != [_tensor("tensor", tensor).shape[0]]:
            raise RuntimeError(f"Split sizes doesn't match total dim 0 size: got {list(sizes)} of {tensor.shape[0]}")
    return _filled(group, async_op, "output", output, input)


def _copied(value):
    """What another process would get of an object: one that is equal, by way of pickle."""
    return pickle.loads(pickle.dumps(value))


def _single(name, values):
    """Check that a list of objects has one for each process."""
    if len(values) != 1:
        raise RuntimeError(f"{name} has {len(values)} entries, expected 1, one for each process of the group")
    return values


def all_gather_object(object_list, obj, group=None):
    """Put the object into the list."""
    if member(group):
        _single("object_list", object_list)[0] = _copied(obj)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Put the object into the list."""
    if member(group):
        _source(dst, group_dst, "dst")
        if object_gather_list is None:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _single("object_gather_list", object_gather_list)[0] = _copied(obj)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Keep the objects, which come from this process."""
    if member(group):
        _source(src, group_src, "src")


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """Put the one object into the list."""
    if member(group):
        _source(src, group_src, "src")
        if not scatter_object_input_list:
            raise ValueError("source rank must provide non-empty scatter_object_input_list")
        given = _single("scatter_object_input_list", scatter_object_input_list)
        scatter_object_output_list[0] = _copied(given[0])


def barrier(group=None, async_op=False, device_ids=None):
    """Return: nobody is waited for."""
    return done(group, async_op, ())


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Return: nobody is waited for."""
    member(group)


def _oneself(name, rank):
    """Refuse a message to or from the process itself, as PyTorch does, and one to a process that is not there."""
    member(None)
    raise ValueError(
        f"{name}: rank {rank} "
        + ("is the rank of the current process, expected another one's" if rank in (0, None) else "is not there")
        + "; the group has one process"
    )


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Refused with ValueError: there is nobody else."""
    _oneself("send", dst)


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Refused with ValueError: there is nobody else."""
    _oneself("recv", src)


isend, irecv = send, recv
