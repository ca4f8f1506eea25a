"""Writes files that PyTorch's load(weights_only=True) reads: a zip with a pickle, and the bytes of each storage.

Names of PyTorch's classes and functions stand in the pickle as text, so PyTorch need not be here. Python's pickler
written in Python is used, the only one that can be told to write names of what does not exist. A storage is written
whole, as PyTorch does, so that views keep their offsets; tensors of different dtypes over one are told apart by a
dtype of their own, which PyTorch reads though it does not write it.
"""

import codecs
import io
import pickle
import types
import zipfile
from collections import Counter, OrderedDict

from tinygrad_ext.archive import sparse_parts
from tinygrad_ext.archive.moving import memory_of
from tinygrad_ext.archive.object_tree import Encoder, place
from tinygrad_ext.archive.safetensors_file import write_all
from tinygrad_ext.archive.zip_entries import write_entry
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.data import storage as _storage
from tinygrad_ext.core.data.dtype import Size, by_name, device, dtype, layout
from tinygrad_ext.core.data.table import NAMED
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.tensor.typed_storage import TypedStorage
from tinygrad_ext.tensor.untyped_storage import UntypedStorage

STORAGES = (TypedStorage, UntypedStorage)
FOLDER = "archive"
_BY_NAME = (type, types.FunctionType, types.ModuleType)  # a pickle says where they are, not what is in them
# dtypes that older versions of PyTorch have a class of storages for
_TITLES = {row.name: row.title for row in NAMED if row.kind not in ("natural", "pair")}


class _Name:
    """A name of PyTorch's in the pickle."""

    def __init__(self, module, name):
        self.line = f"c{module}\n{name}\n".encode()

    def __call__(self):
        """Never called: the pickler asks of what rebuilds an object only that it can be."""


NAMES = {
    word: _Name(module, word)
    for module, words in {
        "torch._utils": "_rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_parameter _rebuild_parameter_with_state "
        "_rebuild_meta_tensor_no_storage _rebuild_sparse_tensor _set_obj_state "
        "_rebuild_wrapper_subclass",
        "torch._tensor": "_rebuild_from_type_v2",
        "torch.serialization": "_get_layout",
        "torch": "Size Tensor device "
        + " ".join([f"{t}Storage" for t in _TITLES.values()] + [row.name for row in NAMED]),
        "torch.storage": "UntypedStorage",
    }.items()
    for word in words.split()
}


class _StorageOf:
    """Stands for the storage of a tensor until the pickler asks for its reference."""

    def __init__(self, t, dtype_name):
        self.t, self.dtype_name = t, dtype_name


def has_class(storage):
    """Whether PyTorch has a class for what a storage says that it holds."""
    return not isinstance(storage, TypedStorage) or storage.dtype.name in _TITLES


class Pickler(pickle._Pickler):
    """Writes tensors by names of PyTorch's, and the rest as Python does."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file, tensors=()):
        super().__init__(file, 2)
        self.storages, self._dtypes, self._seen_as = {}, {}, {}
        for _, t in tensors:
            if not t.is_meta:
                self._dtypes.setdefault(id(_core.storage_of(t)), set()).add(t.dtype.name)

    def save(self, obj, save_persistent_id=True):
        """Numbers of NumPy become Python's, as in the other format; the encoder has let no others through."""
        super().save(obj.item() if type(obj).__module__ == "numpy" else obj, save_persistent_id)

    def persistent_id(self, obj):
        """The reference that stands for a storage, and None for all else."""
        if type(obj) is _StorageOf:
            held, dtype_name = _core.storage_of(obj.t), obj.dtype_name
            seen_as = dtype_name
        elif isinstance(obj, STORAGES):
            held, dtype_name = memory_of(obj), self._shown_as(obj)
            seen_as = dtype_name or "uint8"
        else:
            return None
        key, _ = self.storages.setdefault(id(held), (str(len(self.storages)), held))
        nbytes = _bytes_of(held)
        if nbytes and seen_as and self._seen_as.setdefault(key, seen_as) != seen_as:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{self._seen_as[key]} and {seen_as}; save tensors alone"
            )
        if dtype_name is None:
            return "storage", NAMES["UntypedStorage"], key, "cpu", nbytes
        kind = NAMES[f"{_TITLES[dtype_name]}Storage"]
        return "storage", kind, key, "cpu", nbytes // by_name[dtype_name].itemsize

    def _shown_as(self, storage):
        """The name of the dtype of a storage; None for bytes."""
        if storage.device.type == "meta":
            raise TypeError("save: a storage on meta has no numbers that could be saved: save the tensor")
        if not has_class(storage):
            raise TypeError(
                f"save: PyTorch has no class of storages of {storage.dtype.name}: save the tensor, or the untyped() "
                "storage"
            )
        return storage.dtype.name if isinstance(storage, TypedStorage) else None

    def shares_no_storage(self, t):
        """Whether all tensors over a storage have one dtype."""
        return len(self._dtypes.get(id(_core.storage_of(t)), ())) < 2  # none: it was made for the file

    def reducer_override(self, obj):
        """What rebuilds a tensor, by PyTorch's functions."""
        found = sparse_parts.parts(obj) if isinstance(obj, Tensor) else None
        if not found and type(obj) not in (Tensor, Parameter):
            return NotImplemented
        state = sparse_parts.attributes(obj)
        if type(obj) is Parameter:
            rebuild, args = NAMES["_rebuild_parameter"], (obj.detach(), obj.requires_grad, OrderedDict())
        else:
            rebuild, args = (NAMES["_rebuild_sparse_tensor"], found) if found else self.plain(obj)
        if not state:
            return rebuild, args
        if leads_to(state, obj):  # it can be set on what stands in the pickle already, by a function of PyTorch's
            return rebuild, args, state, None, None, NAMES["_set_obj_state"]
        if type(obj) is Parameter:
            return NAMES["_rebuild_parameter_with_state"], (*args, state)
        return NAMES["_rebuild_from_type_v2"], (rebuild, NAMES["Tensor"], args, state)

    def plain(self, t):
        """What rebuilds a tensor of the class Tensor, attributes aside."""
        if t.is_meta:
            args = t.dtype, tuple(t.shape), t.stride(), t.requires_grad
            return NAMES["_rebuild_meta_tensor_no_storage"], args
        geometry = t.storage_offset(), tuple(t.shape), t.stride(), t.requires_grad, OrderedDict()
        bits = ({name: True for name, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on},)
        metadata = bits if bits[0] else ()
        name = t.dtype.name
        if name in _TITLES and self.shares_no_storage(t):
            return NAMES["_rebuild_tensor_v2"], (_StorageOf(t, name), *geometry, *metadata)
        return NAMES["_rebuild_tensor_v3"], (_StorageOf(t, None), *geometry, t.dtype, *metadata)

    def _name(self, obj):
        self.write(obj.line)

    def _ordered_dict(self, obj):
        state = dict(vars(obj)) or None
        self.save_reduce(OrderedDict, (), state, dictitems=iter(obj.items()), obj=obj)

    def _number(self, obj):
        if -(1 << 2039) <= obj < 1 << 2039:
            return pickle._Pickler.save_long(self, obj)
        raise ValueError("save: an integer of more than 255 bytes, which PyTorch does not read")

    def _bytes(self, obj):
        self.save_reduce(codecs.encode, (str(obj, "latin1"), "latin1"), obj=obj)

    dispatch[_Name] = _name
    dispatch[bytes] = _bytes
    dispatch[OrderedDict] = _ordered_dict
    dispatch[int] = _number
    dispatch[Size] = lambda self, obj: self.save_reduce(NAMES["Size"], (tuple(obj),), obj=obj)
    dispatch[device] = lambda self, obj: self.save_reduce(NAMES["device"], _device(obj), obj=obj)
    dispatch[layout] = lambda self, obj: self.save_reduce(NAMES["_get_layout"], (str(obj),), obj=obj)
    dispatch[dtype] = lambda self, obj: self.save(NAMES[obj.name])
    dispatch[complex] = lambda self, obj: self.save_reduce(complex, (obj.real, obj.imag), obj=obj)


def leads_to(state, t):
    """Whether the attributes of a tensor hold it again: in containers, objects, or attributes of other tensors."""
    seen, left = set(), [state]
    while left:
        obj = left.pop()
        if obj is t:
            return True
        if isinstance(obj, _BY_NAME) or id(obj) in seen:
            continue
        seen.add(id(obj))
        if isinstance(obj, dict):
            left += [*obj, *obj.values()]
        elif isinstance(obj, (list, tuple, set, frozenset)):
            left += obj
        left += getattr(obj, "__dict__", {}).values()
    return False


def _device(obj):
    return (obj.type,) if obj.index is None else (obj.type, obj.index)


def _bytes_of(held):
    return 0 if held is None else _storage.storage_facts(held)[1]


class _Checked(Encoder):
    """Counts and checks what is saved; PyTorch's files hold a few types more."""

    def encode(self, obj, path=()):
        kind = type(obj)
        if kind is bytes or kind is bytearray or isinstance(obj, STORAGES):
            return super().encode(None, path)
        if kind is Counter:
            return super().encode(dict(obj), path)
        if kind is set:
            return super().encode([self._key(item, path) for item in obj], path)
        return super().encode(obj, path)


def write(file, obj):
    """Write the object to a file open for binary writing. TypeError, ValueError for what cannot be saved."""
    encoder = _Checked()
    encoder.encode(obj)
    if encoder.arrays:
        raise TypeError(
            f"save: {place(encoder.arrays[0][0])} is a numpy.ndarray, which PyTorch reads with weights_only=False "
            "only: save from_numpy(array)"
        )
    write_zip(file, obj, Pickler, encoder.tensors)


def write_zip(file, obj, pickler, *given):
    """The pickle of an object by a pickler, and behind it the storages that it met."""
    pickled = io.BytesIO()
    writer = pickler(pickled, *given)
    writer.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        write_entry(archive, f"{FOLDER}/data.pkl", pickled.getvalue())
        write_entry(archive, f"{FOLDER}/byteorder", b"little")
        for key, held in writer.storages.values():
            write_entry(archive, f"{FOLDER}/data/{key}", lambda entry, held=held: _write_storage(entry, held))
        write_entry(archive, f"{FOLDER}/version", b"3\n")


def _write_storage(entry, held):
    nbytes = _bytes_of(held)
    if nbytes:
        write_all(entry, memoryview(_core.window(held, by_name["uint8"], [nbytes], [1], 0)))
