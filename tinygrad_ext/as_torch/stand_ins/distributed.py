"""torch.distributed: a group of one process can be opened; communication with others is refused."""

from . import absent
from . import distributed_distributed_c10d as _c10d

_PUBLIC = f"{_c10d._groups.NAMES} {_c10d._collectives.NAMES} _all_gather_base _reduce_scatter_base".split()
globals().update({name: getattr(_c10d, name) for name in _PUBLIC})
globals().update(absent.types("distributed", _c10d._groups.STORES, _c10d._groups.WHY))
