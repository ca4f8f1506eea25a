"""Reads the tensors out of a file that torch.save wrote, and executes nothing of it.

Such a file is a zip with a pickle, `data.pkl`, and the bytes of each storage; or a row of pickles with the storages
behind them, as before PyTorch 1.6. The pickle may name only what stands in
`NAMES`, may call only what stands in `_CALLS`, and may set attributes of an OrderedDict alone: Python's own BUILD
would let it write into the classes and functions it names. Only the opcodes in `_OPCODES` are known, those of
pickle's own writer. Each is charged to the budget, and so is what one opcode makes Python do a thousandfold: hashing
a key that is built of shared tuples, copying a long text.
"""

import io
import pickle
from collections import OrderedDict
from reprlib import repr as short  # a tuple of two, each of them another of two, is never shown to its end

from tinygrad_ext.archive import plain_parts, safe_names, sparse_parts
from tinygrad_ext.archive.moving import Part, memory_of, settled
from tinygrad_ext.archive.zip_entries import Entries
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data import storage as _storage
from tinygrad_ext.core.data.dtype import Size, by_name, device
from tinygrad_ext.core.data.table import NAMED
from tinygrad_ext.core.data.tensor import Parameter
from tinygrad_ext.tensor.copying import rebuild_wrapper

_TITLES = {row.title: row.name for row in NAMED}


class _StorageType:
    """Stands for torch.FloatStorage and its kin; dtype None for bytes."""

    def __init__(self, dtype):
        self.dtype = dtype


# ---- what the pickle may call --------------------------------------------------------------------------------------


def _tensor(part, offset, size, stride, requires_grad=False, hooks=None, metadata=None):
    return _window(part, part.dtype, offset, size, stride, requires_grad, metadata)


def _tensor_of_dtype(part, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    return _window(part, dtype, offset, size, stride, requires_grad, metadata)


def _window(part, dtype, offset, size, stride, requires_grad, metadata):
    bits = sum(bit for name, bit in (("conj", 1), ("neg", 2)) if type(metadata) is dict and metadata.get(name) is True)
    return _core.window(memory_of(part), dtype, size, stride, offset, bool(requires_grad), flips=bits)


def _parameter(data, requires_grad, hooks, state=None):
    return _with_state(Parameter(data, requires_grad), state)


def _with_state(t, state):
    if type(state) is tuple and len(state) == 2 and not state[1]:  # and no slots
        state = state[0]
    return sparse_parts.with_attributes(t, state) if state else t


def of_class(t, kind, state):
    """A tensor as one of a class with what its file says of it, which marks parameters by an attribute."""
    t = t if type(t) is kind else t.as_subclass(kind)
    attributes = state[0] if type(state) is tuple and len(state) == 2 else state
    if type(attributes) is dict and attributes.pop("_is_param", False):
        t = Parameter(t, t.requires_grad)
    safe_names.set_state(t, state)
    return t


def _from_type(rebuild, kind, args, state):
    """A tensor with attributes of its own. Its class stays behind unless that was named safe."""
    if rebuild not in _TENSORS and not safe_names.is_safe(rebuild):
        raise pickle.UnpicklingError("a tensor is rebuilt by an unknown function")
    made = rebuild(*args)
    if safe_names.is_safe(kind):
        return of_class(made, kind, state)
    made = Parameter(made, made.requires_grad) if kind == "Parameter" and not isinstance(made, Parameter) else made
    return _with_state(made, state) if kind in ("Tensor", "Parameter") else made


def _meta_tensor(dtype, size, stride, requires_grad):
    return _core.window(None, dtype, size, stride, 0, bool(requires_grad))


def _wrapper(kind, dtype, size, stride, offset, layout, device, requires_grad):
    if not safe_names.is_safe(kind):
        raise pickle.UnpicklingError("it holds a tensor of a class that wraps others, which was not named safe")
    return rebuild_wrapper(kind, False, dtype, size, stride, offset, bool(requires_grad), device)


def _sparse(layout, parts):
    if layout in _BLOCKS:
        raise pickle.UnpicklingError(f"it holds a tensor of the layout {layout}, of blocks, which is not here")
    return sparse_parts.made(layout, parts)


def _sparse_to_come(layout, parts):
    """A tensor in the place of a sparse one whose numbers follow: it is made when the pickle is read once more."""
    return _meta_tensor(by_name["float32"], (0,), (1,), False)


_TENSORS = (_tensor, _tensor_of_dtype, _parameter, _meta_tensor, _wrapper, _sparse, _sparse_to_come)


def _layout(name):
    if name not in _LAYOUTS:
        raise pickle.UnpicklingError(f"{name!r} is no layout")
    return _LAYOUTS[name]


_BLOCKS = {name: name for name in ("torch.sparse_bsr", "torch.sparse_bsc")}
_LAYOUTS = {"torch.strided": dtypes.strided, **sparse_parts.LAYOUTS, **_BLOCKS}
NAMES = {
    ("torch.serialization", "_get_layout"): _layout,
    ("collections", "OrderedDict"): plain_parts.ordered_dict,
    ("collections", "Counter"): plain_parts.counter,
    ("__builtin__", "set"): plain_parts.set_of,
    ("__builtin__", "bytearray"): plain_parts.bytes_of,
    ("_codecs", "encode"): plain_parts.text_bytes,
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
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _meta_tensor,
    ("torch._utils", "_rebuild_wrapper_subclass"): _wrapper,
    ("torch._utils", "_rebuild_sparse_tensor"): _sparse,
    ("torch._tensor", "_rebuild_from_type_v2"): _from_type,
    ("__builtin__", "complex"): plain_parts.complex_of,
    ("torch.storage", "UntypedStorage"): _StorageType(None),
    **{("torch", f"{title}Storage"): _StorageType(by_name[name]) for title, name in _TITLES.items()},
    **{("torch", name): by_name[name] for name in _TITLES.values()},
}


def meaning(module, name, reader):
    """What stands for a name, or None. A reader whose storages follow is told of sparse tensors, and meets none yet."""
    found = NAMES.get((module, name))
    if found is _sparse and reader.storages_follow:
        reader.sparse_to_come = True
        return _sparse_to_come
    return found


# ---- reading -------------------------------------------------------------------------------------------------------


_CALLS = (*_TENSORS, plain_parts.ordered_dict, Size, device, plain_parts.text_bytes, _from_type)
_CALLS += (plain_parts.complex_of, plain_parts.set_of, plain_parts.counter, plain_parts.bytes_of, _layout)
_OPCODES = """
    PROTO FRAME STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT BINUNICODE
    SHORT_BINUNICODE BINBYTES SHORT_BINBYTES BINSTRING SHORT_BINSTRING EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    EMPTY_LIST APPEND APPENDS EMPTY_DICT EMPTY_SET GLOBAL STACK_GLOBAL BINPERSID BINPUT LONG_BINPUT MEMOIZE BINGET
    LONG_BINGET
"""


class _Charged:
    """The table of opcodes, each look at it charged."""

    def __init__(self, table, budget):
        self._table, self._budget = table, budget

    def __getitem__(self, code):
        self._budget.spend(1)
        fn = self._table.get(code)
        if fn is None:
            raise pickle.UnpicklingError(f"it has the opcode {code:#x}, which torch.save does not write")
        return fn


class Unpickler(pickle._Unpickler):  # the one in Python: its opcodes can be replaced
    storages_follow = sparse_to_come = False  # behind the pickle
    own = {code: pickle._Unpickler.dispatch[code] for code in (getattr(pickle, n)[0] for n in _OPCODES.split())}

    def __init__(self, file, storage_of, budget):
        super().__init__(file, encoding="utf-8")  # of the texts of Python 2, as in PyTorch
        self._storage_of, self._storages, self._budget = storage_of, {}, budget
        self.dispatch = _Charged(self.own, budget)

    def find_class(self, module, name):
        """The stand-in of a name; UnpicklingError for any that is not in the table."""
        found = meaning(module, name, self)
        found = safe_names.found(module, name) if found is None else found
        if found is None:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}, which is no part of a tensor: load it with PyTorch and save the "
                "state_dict() alone, name it safe with serialization.add_safe_globals, or, if whoever wrote it may "
                "run any code here, load with weights_only=False"
            )
        return found

    def _call(self):
        args = self.stack.pop()
        if not any(self.stack[-1] is fn for fn in _CALLS) and not safe_names.is_safe(self.stack[-1]):
            raise pickle.UnpicklingError(f"it calls {short(self.stack[-1])}")
        self._budget.spend(sum(len(a) // 16 for a in args if isinstance(a, (str, list, tuple))))
        self._budget.spend(sum(len(a) for a in args if isinstance(a, dict)))  # attributes
        self._budget.spend_key(args)  # a message may show them
        if self.stack[-1] is plain_parts.set_of and args and type(args[0]) is list:
            for item in args[0]:
                self._budget.spend_key(item)
        fn, given = (args[0], args[2]) if self.stack[-1] is _from_type and len(args) == 4 else (self.stack[-1], args)
        if fn is _sparse:
            self._budget.spend(sparse_parts.cost(*given))
        self.stack[-1] = self.stack[-1](*args)

    def _new(self):
        args, kind = self.stack.pop(), self.stack.pop()
        if not isinstance(kind, type) or not safe_names.is_safe(kind):
            raise pickle.UnpicklingError(f"it makes a {short(kind)}")
        self.append(kind.__new__(kind, *args))

    def _set_attributes(self):
        state = self.stack.pop()
        if safe_names.is_safe(type(self.stack[-1])):
            self._budget.spend(
                sum(len(part) for part in (state if type(state) is tuple else (state,)) if type(part) is dict)
            )
            safe_names.set_state(self.stack[-1], state)
            return
        if type(self.stack[-1]) is not OrderedDict or type(state) is not dict:
            raise pickle.UnpicklingError(f"it sets attributes of a {type(self.stack[-1]).__name__}")
        if not all(type(key) is str for key in state):
            raise pickle.UnpicklingError("it sets attributes whose names are no text")
        self._budget.spend(len(state))
        vars(self.stack[-1]).update(state)

    def _set_item(self):
        value, key = self.stack.pop(), self.stack.pop()
        self._set_pairs([key, value])

    def _set_items(self):
        self._set_pairs(self.pop_mark())

    def _set_pairs(self, items):
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict) and not safe_names.is_safe(type(target)):
            raise pickle.UnpicklingError(f"it sets items of a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2]):
            self._budget.spend_key(key)
            target[key] = value

    def _add_items(self):
        items = self.pop_mark()
        for item in items:
            self._budget.spend_key(item)
        self.stack[-1].update(items)

    def _frozen_set(self):
        items = self.pop_mark()
        for item in items:
            self._budget.spend_key(item)
        self.append(frozenset(items))

    own[pickle.REDUCE[0]] = _call
    own[pickle.NEWOBJ[0]] = _new
    own[pickle.BUILD[0]] = _set_attributes
    own[pickle.SETITEM[0]] = _set_item
    own[pickle.SETITEMS[0]] = _set_items
    own[pickle.ADDITEMS[0]] = _add_items
    own[pickle.FROZENSET[0]] = _frozen_set

    def persistent_load(self, reference):
        """The storage that a reference in the pickle means."""
        word, kind, key, _, count, *view = reference
        if word != "storage" or not isinstance(kind, _StorageType):
            raise pickle.UnpicklingError(f"it refers to {short(word)}, and only storages are known")
        if type(key) is not str or type(count) is not int or count < 0:
            raise pickle.UnpicklingError(f"it refers to a storage {short(key)} of {short(count)} elements")
        if view not in ([], [None]):
            raise pickle.UnpicklingError("it refers to a part of a storage, as PyTorch did before 0.4")
        need = count * (kind.dtype.itemsize if kind.dtype else 1)
        if key not in self._storages:
            self._storages[key] = self._storage_of(key, need)
        part = Part(self._storages[key], kind.dtype)
        have = _storage.storage_facts(part.storage)[1]
        if have < need:
            raise pickle.UnpicklingError(f"storage {key} holds {have} bytes, fewer than its {count} elements need")
        return part


def read(source, name, onto, budget):
    """The object in a PyTorch file. RuntimeError when it is damaged, or holds more than tensors."""
    try:
        return settled(read_with(Unpickler, source, budget), onto)
    except Exception as e:  # a damaged pickle fails in any opcode and in any way
        kind = _Refused if isinstance(e, pickle.UnpicklingError) else RuntimeError
        raise kind(f"load: {name} cannot be read as a PyTorch file: {e}") from None


class _Refused(RuntimeError, pickle.UnpicklingError):
    """What PyTorch raises, too."""


def read_with(unpickler, source, budget):
    """The object in a PyTorch file, by ``unpickler(file, storage of a key and a size in bytes, budget)``."""
    if is_row(source):
        return _read_row(source, budget, unpickler)
    return _read(Entries(source, budget), budget, unpickler)


def _read(entries, budget, unpickler):
    names = entries.names()
    folders = [n[: -len("/data.pkl")] for n in names if n.count("/") == 1 and n.endswith("/data.pkl")]
    if len(folders) != 1:
        hint = ": jit.load reads archives of graphs" if "manifest.json" in names else ""
        raise ValueError(f"it has no data.pkl, so it is a zip of another kind{hint}")
    folder = folders[0]
    if f"{folder}/constants.pkl" in names:
        raise ValueError("it is a TorchScript archive; save its state_dict() with torch.save")
    if f"{folder}/byteorder" in names and entries.bytes(f"{folder}/byteorder") != b"little":
        raise ValueError("its numbers are big-endian")
    pickled = io.BytesIO(entries.bytes(f"{folder}/data.pkl"))
    return unpickler(pickled, lambda key, _: entries.storage(f"{folder}/data/{key}"), budget).load()


# ---- the format before PyTorch 1.6: pickles in a row, and the storages behind them ---------------------------------

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_FIRST = pickle.dumps(_MAGIC, 2)


def is_row(source):
    """Whether a file begins as torch.save wrote it before 1.6, and still does when it is told to."""
    return source.bytes(0, min(len(_FIRST), source.size)) == _FIRST


def _read_row(source, budget, unpickler):
    file, sizes, storages, left = source.entries(), {}, {}, source.size

    def storage_of(key, nbytes):
        nonlocal left
        left -= nbytes
        if left < 0:
            raise ValueError(f"its storages hold more bytes than the file: {key} alone {nbytes}")
        sizes[key], storages[key] = nbytes, _storage.empty_storage(nbytes)
        return storages[key]

    def loaded():
        reader = unpickler(file, storage_of, budget)
        reader.storages_follow = True
        return reader.load(), reader.sparse_to_come

    if loaded()[0] != _MAGIC or loaded()[0] != _PROTOCOL:
        raise ValueError(f"its protocol is not {_PROTOCOL}")
    system, _ = loaded()
    if type(system) is not dict or system.get("little_endian") is not True:
        raise ValueError("its numbers are big-endian")
    begin = file.tell()
    (made, again), (keys, _) = loaded(), loaded()
    if type(keys) is not list or sorted(map(str, keys)) != sorted(sizes):
        raise ValueError("the storages that it lists are not those that its tensors name")
    at = file.tell()
    for key in keys:
        count, nbytes = int.from_bytes(source.bytes(at, 8), "little"), sizes[key]
        if nbytes and (not count or nbytes % count):
            raise ValueError(f"storage {key} holds {count} elements, and its tensors need {nbytes} bytes")
        source.read_into(at + 8, memoryview(_core.window(storages[key], by_name["uint8"], [nbytes], [1], 0)))
        at += 8 + nbytes
    if not again:
        return made
    file.seek(begin)  # sparse tensors are checked when they are made, which takes their numbers
    return unpickler(file, lambda key, _: storages[key], budget).load()
