"""torch.storage: the memory of tensors."""

from tinygrad_ext.tensor.copying import UntypedStorage
from tinygrad_ext.tensor.typed_storage import TypedStorage

from . import absent

__all__ = ["TypedStorage", "UntypedStorage"]
_WHY = "a tensor's memory is an UntypedStorage"
globals().update(absent.types("storage", "_LegacyStorage _StorageBase", _WHY))
