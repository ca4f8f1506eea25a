"""torch.distributed.nn.functional: the collectives of a group of one process with their gradients, which are copies.

Each returns what its like of `torch.distributed` writes, as an op of the tensors that are given, so that its gradient
is a copy's.
"""

from . import distributed_collectives as _collectives
from .distributed_group import ReduceOp as _ReduceOp
from .distributed_group import group as _group

NAMES = "broadcast gather scatter reduce reduce_scatter all_gather all_to_all all_to_all_single all_reduce"


def _checked(name, tensor, *args, **kwargs):
    """A copy of the tensor, after what the collective of that name says of its arguments."""
    getattr(_collectives, name)(*args, **kwargs)
    return tensor.clone()


def broadcast(tensor, src, group=_group.WORLD):
    """The tensor."""
    return _checked("broadcast", tensor, tensor, src, group)


def reduce(tensor, dst, op=_ReduceOp.SUM, group=_group.WORLD):
    """The tensor."""
    return _checked("reduce", tensor, tensor, dst, op, group)


def all_reduce(tensor, op=_ReduceOp.SUM, group=_group.WORLD):
    """The tensor."""
    return _checked("all_reduce", tensor, tensor, op, group)


def gather(tensor, dst=0, group=_group.WORLD):
    """A tuple of the tensor."""
    return (_checked("gather", tensor, tensor.detach(), [tensor.detach().clone()], dst, group),)


def all_gather(tensor, group=_group.WORLD):
    """A tuple of the tensor."""
    return (_checked("all_gather", tensor, [tensor.detach().clone()], tensor, group),)


def scatter(tensors, src=0, group=_group.WORLD):
    """The one tensor."""
    return _checked("scatter", tensors[0], tensors[0].detach().clone(), tensors, src, group)


def reduce_scatter(output, input_list, op=_ReduceOp.SUM, group=_group.WORLD):
    """The one tensor, which is written to output as well."""
    return _checked("reduce_scatter", input_list[0], output, input_list, op, group)


def all_to_all(output_tensor_list, input_tensor_list, group=_group.WORLD):
    """A tuple of the one tensor, which is written to that of the output list as well."""
    return (_checked("all_to_all", input_tensor_list[0], output_tensor_list, input_tensor_list, group),)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=_group.WORLD):
    """The input, which is written to output as well."""
    return _checked("all_to_all_single", input, output, input, output_split_sizes, input_split_sizes, group)
