"""torch.storage: the memory of tensors."""

from tinygrad_ext.tensor.copying import UntypedStorage

from . import absent

__all__ = ["UntypedStorage"]
_WHY = "a tensor's memory has no dtype; untyped_storage() gives it"
globals().update(absent.types("storage", "TypedStorage _LegacyStorage _StorageBase", _WHY))
