"""torch.storage: the memory of tensors."""

from tinygrad_ext.tensor.legacy_storage import LegacyStorage as _LegacyStorage
from tinygrad_ext.tensor.typed_storage import TypedStorage
from tinygrad_ext.tensor.untyped_storage import UntypedStorage

from . import absent

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]
_WHY = "a tensor's memory is an UntypedStorage"
globals().update(absent.types("storage", "_StorageBase", _WHY))
