"""torch.utils.data._utils: what the loader is made of."""

from . import utils_data__utils_collate as collate

__all__ = ["collate"]
