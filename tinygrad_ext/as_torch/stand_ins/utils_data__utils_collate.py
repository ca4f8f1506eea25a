"""torch.utils.data._utils.collate: how samples become a batch."""

from tinygrad_ext.utils.data import default_collate, default_convert

__all__ = ["default_collate", "default_convert"]
