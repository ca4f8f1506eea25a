"""The classes of storages by dtype that were before TypedStorage: `FloatStorage` and its kin."""

import sys

from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.tensor.interop import frombuffer
from tinygrad_ext.tensor.typed_storage import TypedStorage, storage_shown
from tinygrad_ext.tensor.untyped_storage import UntypedStorage

_CLASSES = {
    **{f"{name.title()}Storage": name for name in ("bool", "double", "float", "half", "int", "long", "short")},
    "BFloat16Storage": "bfloat16",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}


class _LegacyType(type):
    """Metaclass of FloatStorage and its kin: a call makes a TypedStorage, isinstance asks for the dtype."""

    def __call__(cls, *args, wrap_storage=None, **others):
        if "dtype" not in vars(cls):
            raise RuntimeError(
                f"Only child classes of _LegacyStorage can be instantiated, and {cls.__name__} has no dtype: use "
                "FloatStorage or another of its kind"
            )
        if others.keys() - {"device"}:
            raise RuntimeError(f"{cls.__name__}(): Keyword argument {min(others)!r} cannot be specified")
        if len(args) > 1:
            raise RuntimeError(
                f"{cls.__name__}(): Too many positional arguments ({len(args)} given, at most 1 expected)"
            )
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype, **others)

    def __instancecheck__(cls, instance):
        if "dtype" not in vars(cls):
            return isinstance(instance, TypedStorage)
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype and instance.device.type == "cpu"


class LegacyStorage(metaclass=_LegacyType):
    """The classes of storages by dtype, deprecated in favour of bytes."""

    @classmethod
    def from_buffer(cls, buffer, byte_order="native", *, count=-1, offset=0):
        """Copy elements out of a buffer, whose bytes are in the order "native", "little" or "big"."""
        made = frombuffer(bytearray(buffer), dtype=cls.dtype, count=count, offset=offset).clone()
        if byte_order not in ("native", "little", "big"):
            raise ValueError(
                f"from_buffer(): invalid byte_order {byte_order!r} (expected 'big', 'little', or 'native')"
            )
        if byte_order not in ("native", sys.byteorder):
            made.untyped_storage().byteswap(cls.dtype)
        return storage_shown(made)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """The first elements of a file; written back to it where they are shared."""
        nbytes = size * cls.dtype.itemsize
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, nbytes), dtype=cls.dtype)

    @classmethod
    def _new_shared(cls, size):
        return cls(size).share_memory_()


for _name, _kind in _CLASSES.items():
    globals()[_name] = _LegacyType(
        _name,
        (LegacyStorage,),
        {"dtype": by_name[_kind], "__doc__": f"Memory as numbers of {_kind}.", "__module__": "tinygrad_ext"},
    )


def class_of(dtype):
    """The class of storages of a dtype; None where there is none."""
    return next((globals()[name] for name, kind in _CLASSES.items() if by_name[kind] == dtype), None)


Storage = globals()["FloatStorage"]
