"""torch.storage: the memory of tensors."""

import io

import tinygrad_ext as _tg
from tinygrad_ext.tensor import legacy_storage as _legacy
from tinygrad_ext.tensor.legacy_storage import LegacyStorage as _LegacyStorage
from tinygrad_ext.tensor.typed_storage import TypedStorage
from tinygrad_ext.tensor.untyped_storage import UntypedStorage

from . import absent

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]


def _dtype_to_storage_type_map():
    """The name of the class of storages of each dtype that has one."""
    kinds = [kind for kind in vars(_legacy).values() if isinstance(kind, type) and issubclass(kind, _LegacyStorage)]
    return {kind.dtype: kind.__name__ for kind in kinds if kind is not _LegacyStorage}


_WHY = "a tensor's memory is an UntypedStorage"


def _load_from_bytes(b):
    """What a pickle of a tensor calls for its elements: a storage, read without running anything."""
    return _tg.load(io.BytesIO(b), weights_only=True)


globals().update(absent.types("storage", "_StorageBase", _WHY))
