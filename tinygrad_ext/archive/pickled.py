"""Objects of any class, pickled as PyTorch's save does: a zip of `pytorch_writer.py` whose pickle may name anything.

Reading one imports and calls what it names, so `load` does it for ``weights_only=False`` alone. Names of PyTorch's
modules mean ours, so that a whole model that PyTorch saved comes back as one of ours, where its class keeps the same
attributes.
"""

import functools
import importlib
import pickle

from tinygrad_ext.archive import safe_names
from tinygrad_ext.archive.moving import settled
from tinygrad_ext.archive.pytorch import Unpickler, meaning, read_with
from tinygrad_ext.archive.pytorch_writer import NAMES, STORAGES, Pickler, has_class, write_zip
from tinygrad_ext.core.call import unasked
from tinygrad_ext.core.call.subclass import attributes_of
from tinygrad_ext.core.data.tensor import Parameter, Tensor

OURS = "tinygrad_ext"
_PICKLES = ("__getstate__", "__reduce__", "__reduce_ex__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_PICKLES += ("__torch_dispatch__",)


class _Pickler(Pickler):
    """Takes whatever Python's pickle takes. Tensors name their own dtype, whoever shares their storage."""

    dispatch = {**Pickler.dispatch, int: pickle._Pickler.dispatch[int], bytes: pickle._Pickler.dispatch[bytes]}

    def save(self, obj, save_persistent_id=True):
        """As Python's; numbers of NumPy stay what they are."""
        pickle._Pickler.save(self, obj, save_persistent_id)

    def persistent_id(self, obj):
        """As PyTorch's; None too for storages that its files have no class for, which are pickled as any object."""
        if isinstance(obj, STORAGES) and (type(obj) not in STORAGES or not has_class(obj)):
            return None
        return super().persistent_id(obj)

    def reducer_override(self, obj):
        """As PyTorch's files; tensors of other classes, too: files name the class and nothing of ours."""
        found = super().reducer_override(obj)
        if found is not NotImplemented or not isinstance(obj, Tensor) or not _is_plain_subclass(type(obj)):
            return found
        was = unasked.set_disabled(True, True)  # the class has nothing to say to this
        try:
            rebuild, args = self._plain(obj)
        finally:
            unasked.set_disabled(*was)
        return NAMES["_rebuild_from_type_v2"], (rebuild, type(obj), args, attributes_of(obj) or {})

    def shares_no_storage(self, t):
        """Nobody has counted what is to be saved."""
        return False


def write(file, obj):
    """Write any object to a file open for binary writing. What pickle raises for what it does not take."""
    write_zip(file, obj, _Pickler)


def _is_plain_subclass(cls):
    """Whether what a tensor of a class is stands in its memory and attributes alone, for all that the class says."""
    own = [base for base in cls.__mro__ if not issubclass(Tensor, base)]
    return not issubclass(cls, Parameter) and not any(name in vars(base) for base in own for name in _PICKLES)


class _Reader(pickle.Unpickler):
    storages_follow = sparse_to_come = False

    def __init__(self, file, storage_of, budget, **texts):
        super().__init__(file, **texts)
        self._storage_of, self._storages = storage_of, {}

    def persistent_load(self, reference):
        """The storage, or the class, before which older files put its source, that a reference means."""
        return reference[1] if reference[0] == "module" else Unpickler.persistent_load(self, reference).shown()

    def find_class(self, module, name):
        """What the file names: PyTorch's names are ours, and all others are imported."""
        root, _, below = module.partition(".")
        if root != "torch":
            return super().find_class(module, name)
        if (module, name) == ("torch._tensor", "_rebuild_from_type_v2"):
            return _from_type
        if (module, name) == ("torch._utils", "_set_obj_state"):
            return safe_names.set_state
        found = meaning(module, name, self)
        if found is not None and not isinstance(found, str):
            return found
        if not below:
            return getattr(importlib.import_module(OURS), name)
        return super().find_class(f"{OURS}.{below}", name)


def _from_type(rebuild, kind, args, state):
    """A tensor of a subclass, or with attributes of its own."""
    made = rebuild(*args)
    if kind not in (Tensor, Parameter):
        made = made.as_subclass(kind)
    for name, value in (state if isinstance(state, dict) else {}).items():
        setattr(made, name, value)
    return made


def read(source, onto, budget, *, encoding="utf-8", errors="strict", fix_imports=True):
    """The object in a PyTorch file, made by whatever the file names; the others are Python's, of files of Python 2."""
    reader = functools.partial(_Reader, encoding=encoding, errors=errors, fix_imports=fix_imports)
    made = read_with(reader, source, budget)
    return settled(made, onto) if onto is not None and onto.type == "meta" else made
