"""torch.distributed.distributed_c10d: a group of one process; what stands in its two halves, and nothing of its own."""

from . import absent
from . import distributed_collectives as _collectives
from . import distributed_group as _groups

for _half in (_groups, _collectives):
    globals().update({name: getattr(_half, name) for name in _half.NAMES.split()})
globals().update(absent.types("distributed.distributed_c10d", _groups.STORES, _groups.WHY))
_get_default_group = _groups._get_default_group
# the older names of two, which libraries still ask for
_all_gather_base, _reduce_scatter_base = _collectives.all_gather_into_tensor, _collectives.reduce_scatter_tensor
