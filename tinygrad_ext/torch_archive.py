"""Reads the tensors out of a file that torch.save wrote, and executes nothing of it.

Such a file is a zip with a pickle, `data.pkl`, and the bytes of each storage. The pickle may name only what stands in
`_NAMES`, may call only what stands in `_CALLS`, and may set attributes of an OrderedDict alone: Python's own BUILD
would let it write into the classes and functions it names. The opcodes that make instances or import are taken out. A
compressed entry is refused too, since torch.save writes none and a small one may hold gigabytes.
"""

import io
import pickle
import zipfile
from collections import OrderedDict

from tinygrad_ext.core import interop as _core
from tinygrad_ext.core import storage as _storage
from tinygrad_ext.core.dtype import Size, by_name, device
from tinygrad_ext.core.tensor import Parameter

_TITLES = {
    "Bool": "bool",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


class _StorageType:
    """Stands for torch.FloatStorage and its kin; dtype None for bytes."""

    def __init__(self, dtype):
        self.dtype = dtype


class _Part:
    """A storage of the file with the dtype its tensors have."""

    def __init__(self, storage, dtype):
        self.storage, self.dtype = storage, dtype


# ---- what the pickle may call --------------------------------------------------------------------------------------


def _tensor(part, offset, size, stride, requires_grad=False, hooks=None, metadata=None):
    return _window(part, part.dtype, offset, size, stride, requires_grad)


def _tensor_of_dtype(part, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    return _window(part, dtype, offset, size, stride, requires_grad)


def _window(part, dtype, offset, size, stride, requires_grad):
    return _core.window(part.storage, dtype, size, stride, offset, bool(requires_grad))


def _parameter(data, requires_grad, hooks, state=None):
    return Parameter(data, requires_grad)


def _from_type(rebuild, kind, args, state):
    """A tensor with attributes of its own, which stay behind."""
    if rebuild not in (_tensor, _tensor_of_dtype, _parameter):
        raise pickle.UnpicklingError("a tensor is rebuilt by an unknown function")
    made = rebuild(*args)
    return Parameter(made, made.requires_grad) if kind == "Parameter" and not isinstance(made, Parameter) else made


def _text_bytes(text, encoding):
    """What older pickles write for bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


_NAMES = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _text_bytes,
    ("torch", "Size"): Size,
    ("torch", "device"): device,
    ("torch", "Tensor"): "Tensor",
    ("torch._tensor", "Tensor"): "Tensor",
    ("torch.nn.parameter", "Parameter"): "Parameter",
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_dtype,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _from_type,
    ("torch.storage", "UntypedStorage"): _StorageType(None),
    **{("torch", f"{title}Storage"): _StorageType(by_name[name]) for title, name in _TITLES.items()},
    **{("torch", name): by_name[name] for name in _TITLES.values()},
}


# ---- reading -------------------------------------------------------------------------------------------------------


_CALLS = (OrderedDict, Size, device, _text_bytes, _tensor, _tensor_of_dtype, _parameter, _from_type)
_MAKERS = (
    pickle.NEWOBJ,
    pickle.NEWOBJ_EX,
    pickle.INST,
    pickle.OBJ,
    pickle.EXT1,
    pickle.EXT2,
    pickle.EXT4,
    pickle.REDUCE,
    pickle.BUILD,
)


class _Unpickler(pickle._Unpickler):  # the one in Python: its opcodes can be replaced
    dispatch = {code: fn for code, fn in pickle._Unpickler.dispatch.items() if bytes([code]) not in _MAKERS}

    def __init__(self, archive, folder):
        super().__init__(io.BytesIO(_entry(archive, f"{folder}/data.pkl")))
        self._archive, self._folder, self._storages = archive, folder, {}

    def find_class(self, module, name):
        """The stand-in of a name; UnpicklingError for any that is not in the table."""
        found = _NAMES.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}, which is no part of a tensor: load it with "
                f"PyTorch and save the "
                "state_dict() alone"
            )
        return found

    def _call(self):
        args = self.stack.pop()
        if not any(self.stack[-1] is fn for fn in _CALLS):
            raise pickle.UnpicklingError(f"it calls {self.stack[-1]!r}")
        self.stack[-1] = self.stack[-1](*args)

    def _set_attributes(self):
        state = self.stack.pop()
        if type(self.stack[-1]) is not OrderedDict or type(state) is not dict:
            raise pickle.UnpicklingError(f"it sets attributes of a {type(self.stack[-1]).__name__}")
        vars(self.stack[-1]).update(state)

    dispatch[pickle.REDUCE[0]] = _call
    dispatch[pickle.BUILD[0]] = _set_attributes

    def persistent_load(self, reference):
        """The storage that a reference in the pickle means."""
        word, kind, key, _, count = reference
        if word != "storage" or not isinstance(kind, _StorageType):
            raise pickle.UnpicklingError(f"it refers to {word!r}, and only storages are known")
        if key not in self._storages:
            self._storages[key] = _storage.storage_of_bytes(_entry(self._archive, f"{self._folder}/data/{key}"))
        part = _Part(self._storages[key], kind.dtype)
        have = _storage.storage_facts(part.storage)[1]
        if have < count * (kind.dtype.itemsize if kind.dtype else 1):
            raise pickle.UnpicklingError(f"storage {key} holds {have} bytes, fewer than its {count} elements need")
        return part


def _entry(archive, name):
    """Bytes of one entry."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise zipfile.BadZipFile(f"its entry {name} is compressed, which torch.save never does")
    return archive.read(info)


def read(data, name):
    """The object in the bytes of a PyTorch file. RuntimeError when it is damaged, or holds more than tensors."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(archive)
    except Exception as e:  # a damaged pickle fails in any opcode and in any way
        raise RuntimeError(f"load: {name} cannot be read as a PyTorch file: {e}") from None


def _read(archive):
    folders = [n[: -len("/data.pkl")] for n in archive.namelist() if n.count("/") == 1 and n.endswith("/data.pkl")]
    if len(folders) != 1:
        raise ValueError("it has no data.pkl, so it is a zip of another kind")
    folder = folders[0]
    if f"{folder}/constants.pkl" in archive.namelist():
        raise ValueError("it is a TorchScript archive; save its state_dict() with torch.save")
    if f"{folder}/byteorder" in archive.namelist() and _entry(archive, f"{folder}/byteorder") != b"little":
        raise ValueError("its numbers are big-endian")
    return _Unpickler(archive, folder).load()
