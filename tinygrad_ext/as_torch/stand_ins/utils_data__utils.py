"""torch.utils.data._utils: what the loader is made of."""

from . import utils_data__utils_collate as collate

__all__ = ["collate"]

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds; PyTorch asks so often whether a worker lives, here its end is waited for
