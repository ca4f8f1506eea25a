"""torch.utils.data._utils.worker: what runs in the processes of a loader."""

from tinygrad_ext.utils.data.worker import WorkerInfo, get_worker_info
from tinygrad_ext.utils.data.worker import numpys_seed as _generate_state  # noqa: F401 - its name there

__all__ = ["WorkerInfo", "get_worker_info"]
