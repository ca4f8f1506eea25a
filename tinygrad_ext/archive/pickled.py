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
from tinygrad_ext.archive.pytorch import Unpickler, meaning, of_class, read_with
from tinygrad_ext.archive.pytorch_writer import NAMES, STORAGES, Pickler, has_class, leads_to, write_zip
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.data.dtype import strided
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.tensor.copying import rebuild_tensor, rebuild_wrapper

OURS = "tinygrad_ext"


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

    def shares_no_storage(self, t):
        """Nobody has counted what is to be saved."""
        return False

    def reducer_override(self, obj):
        """As the base's; what rebuilds a tensor of a subclass too, by its class and PyTorch's functions."""
        found = super().reducer_override(obj)
        if found is not NotImplemented or not isinstance(obj, Tensor):
            return found
        found = obj.__reduce_ex__(2)  # the class may have its own
        by_names = {rebuild_tensor: self._of_window, rebuild_wrapper: _of_wrapper}.get(found[0])
        return self._of_class(obj, found, by_names) if by_names and type(found) is tuple else found

    def _of_class(self, t, found, by_names):
        (cls, marked, *given), state = found[1], found[2] if len(found) > 2 else {}
        told, *slots = state if type(state) is tuple else (state,)
        later = leads_to(state, t)
        if (hasattr(cls, "__setstate__") and (marked or later)) or type(told or {}) is not dict:
            return found
        told = {**(told or {}), **({"_is_param": True} if marked else {})}  # as PyTorch marks a parameter of a subclass
        state = (told, *slots) if slots else told
        rebuild, args = by_names(cls, *given)
        if later:
            set_later = state, None, None, NAMES["_set_obj_state"]
            return (
                NAMES["_rebuild_from_type_v2"],
                (rebuild, cls, args, {"_is_param": True} if marked else {}),
                *set_later,
            )
        return NAMES["_rebuild_from_type_v2"], (rebuild, cls, args, state)

    def _of_window(self, cls, window):
        return self.plain(_core.window(*window[:6], flips=window[6] if len(window) > 6 else 0))


def _of_wrapper(cls, dtype, size, stride, offset, requires_grad, device):
    return NAMES["_rebuild_wrapper_subclass"], (cls, dtype, size, stride, offset, strided, device, requires_grad)


def write(file, obj):
    """Write any object to a file open for binary writing. What pickle raises for what it does not take."""
    write_zip(file, obj, _Pickler)


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
        if (module, name) in _OF_CLASSES:
            return _OF_CLASSES[module, name]
        found = meaning(module, name, self)
        if found is not None and not isinstance(found, str):
            return found
        if not below:
            return getattr(importlib.import_module(OURS), name)
        return super().find_class(f"{OURS}.{below}", name)


def _from_type(rebuild, kind, args, state):
    """A tensor of a subclass, or with attributes of its own."""
    if kind in (Tensor, Parameter):
        made = rebuild(*args)
        safe_names.set_state(made, state)
        return made
    return of_class(rebuild(*args), kind, state)


def _wrapper(kind, dtype, size, stride, offset, layout, device, requires_grad):
    return rebuild_wrapper(kind, False, dtype, size, stride, offset, requires_grad, device)


_OF_CLASSES = {
    ("torch._tensor", "_rebuild_from_type_v2"): _from_type,
    ("torch._utils", "_rebuild_wrapper_subclass"): _wrapper,
    ("torch._utils", "_set_obj_state"): safe_names.set_state,
}


def read(source, onto, budget, *, encoding="utf-8", errors="strict", fix_imports=True):
    """The object in a PyTorch file, made by whatever the file names; the others are Python's, of files of Python 2."""
    reader = functools.partial(_Reader, encoding=encoding, errors=errors, fix_imports=fix_imports)
    made = read_with(reader, source, budget)
    return settled(made, onto) if onto is not None and onto.type == "meta" else made
