"""Pickling, copying, and making subclasses of tensors.

All three take a tensor apart into storage and window. The storage is one object for all tensors over it, so what
shares memory before shares it after: two views in one pickle, or in one deepcopy.
"""

import copy
import weakref
from copyreg import _slotnames

from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.call import subclass as _subclass
from tinygrad_ext.core.call import unasked
from tinygrad_ext.core.call.elsewhere import class_name, how_to_convert
from tinygrad_ext.core.call.levels import atomic
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.core.call.subclass import attributes_of, set_attributes
from tinygrad_ext.core.data.devices import copy_of
from tinygrad_ext.core.data.dtype import channels_last, channels_last_3d, contiguous_format, preserve_format
from tinygrad_ext.core.data.slots import get_slot, set_slot
from tinygrad_ext.core.data.tensor import Parameter, Tensor
from tinygrad_ext.core.grad.methods import increment, leave_base, set_geometry_from
from tinygrad_ext.tensor import unset
from tinygrad_ext.tensor.typed_storage import TypedStorage, storage_shown
from tinygrad_ext.tensor.untyped_storage import UntypedStorage, storage_over

# ---- pickle --------------------------------------------------------------------------------------------------------


def _plain_class(cls):
    """The class to name in a pickle, and whether the tensor is a Parameter made of it."""
    return getattr(cls, "_parameter_of", cls), cls is not Parameter and issubclass(cls, Parameter)


def reduce_tensor(t):
    """(function, arguments, state) of which pickle makes t again; the grad and the graph stay behind, as in PyTorch.

    The state is given once the tensor is made and known, so that it can lead back to it.
    """
    cls, marked = _plain_class(type(t))
    marked = marked and hasattr(type(t), "_parameter_of")
    window = (_core.storage_of(t), t.dtype, tuple(t.shape), t.stride(), t.storage_offset(), t.requires_grad)
    if bits := _core.flips(t):
        window = (*window, bits)
    if _wraps(t):
        made = rebuild_wrapper, (cls, marked, *window[1:6], t.device)
    else:
        made = rebuild_tensor, (cls, marked, window)
    state = _state_of(t)
    return made if state is None else (*made, state)


def _state_of(t):
    """What pickle sets on a tensor: what its class says, else attributes and slots as pickle tells them apart."""
    own = getattr(type(t), "__getstate__", None)
    if own is not getattr(object, "__getstate__", None):  # object has one since Python 3.11
        return t.__getstate__()
    held = attributes_of(t)
    if hasattr(type(t), "__setstate__"):
        return held
    slots = {name: held.pop(name) for name in set(_slotnames(type(t))) & held.keys()}
    return (held or None, slots) if slots else held or None


def rebuild_tensor(cls, marked, window, state=None):
    """A tensor of class cls over a storage; a Parameter of that class where marked.

    state: attributes, which older pickles have here.
    """
    *window, bits = window if len(window) > 6 else (*window, 0)
    t = _core.window(*window, cls=parameter_class(cls) if marked else cls, flips=bits)
    set_attributes(t, state or {})
    return t


def _wraps(t):
    """Whether t has no memory on the device that it says, since what it wraps has it."""
    return type(t) not in (Tensor, Parameter) and _core.storage_of(t) is None and t.device.type != "meta"


def rebuild_wrapper(cls, marked, dtype, size, stride, offset, requires_grad, device):
    """A tensor of class cls without memory of its own."""
    cls = parameter_class(cls) if marked else cls
    return _subclass.make_wrapper_subclass(
        cls, size, stride, offset, dtype=dtype, device=device, requires_grad=requires_grad
    )


# ---- deepcopy ------------------------------------------------------------------------------------------------------


def deepcopy_tensor(t, memo):
    """A leaf of its own, with its grad and attributes; memory shared within one deepcopy stays so.

    Of a Parameter the numbers alone are copied, and into memory of its own.
    """
    if id(t) in memo:
        return memo[id(t)]
    if isinstance(t, Parameter) and not hasattr(type(t), "_parameter_of"):
        memo[id(t)] = made = type(t)(t.data.clone(), t.requires_grad)
        return made
    if not t.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
            "at the moment. "
            "This one was computed from others that require grad: copy it with detach().clone()."
        )
    if _wraps(t):
        made = rebuild_wrapper(type(t), False, t.dtype, t.shape, t.stride(), 0, t.requires_grad, t.device)
    else:
        plain = t.detach().clone() if _core.flips(t) else t  # with a bit, the copy is one without
        storage = copy_of(_core.storage_of(plain), memo)
        window = storage, t.dtype, t.shape, plain.stride(), plain.storage_offset(), t.requires_grad
        made = _core.window(*window, cls=type(t))
    memo[id(t)] = made
    if t.grad is not None:
        made.grad = copy.deepcopy(t.grad, memo)
    set_attributes(made, copy.deepcopy(attributes_of(t), memo))
    return made


# ---- subclasses and parameters -------------------------------------------------------------------------------------

_parameter_classes = {}
_asked = []  # the class between a subclass and Parameter, made once Tensor has its `__torch_function__`
_carried = {}  # id -> weak reference to a Parameter of what a level carries, which can hold no mark


def _asked_as_tensor(cls, func, types, args=(), kwargs=None):
    """Tensor's `__torch_function__` for the subclass that a class of parameters is of: results are of that one."""
    types = tuple(getattr(t, "_parameter_of", t) for t in types)
    return _default_of(getattr(cls, "_parameter_of", cls))(func, types, args, kwargs)


def _told_of(cls, name):
    """A protocol's method of a subclass for the class of its parameters: one of the subclass's own is told that one.

    So what it makes with `cls(...)` is an instance as always.
    """
    found = next(f for c in cls.__mro__ if (f := vars(c).get(name)))
    if not isinstance(found, classmethod) or found is vars(Tensor).get(name):
        return found

    def ask(made, func, types, args=(), kwargs=None):
        return getattr(cls, name)(func, tuple(getattr(t, "_parameter_of", t) for t in types), args, kwargs or {})

    return classmethod(ask)


def _default_of(cls):
    return vars(Tensor)["__torch_function__"].__get__(None, cls)


def _asks_as_tensor():
    """A base before Parameter whose `__torch_function__` is Tensor's: where `super()` of a subclass' own one leads."""
    if not _asked:
        body = {"__slots__": (), "__module__": __name__, "__torch_function__": classmethod(_asked_as_tensor)}
        _asked.append(type("AsksAsTensor", (Tensor,), body))
    return _asked[0]


def parameter_class(cls):
    """The class of Parameter(data) for data of the subclass cls: an instance of both."""
    if cls is Tensor or issubclass(cls, Parameter):
        return Parameter if cls is Tensor else cls
    made = _parameter_classes.get(cls)
    if made is None:
        body = {
            "__init__": Parameter.__init__,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__torch_function__": _told_of(cls, "__torch_function__"),  # else that of Parameter
            "_parameter_of": cls,
        }
        if getattr(cls, "__torch_dispatch__", None) is not getattr(Tensor, "__torch_dispatch__", None):
            body["__torch_dispatch__"] = _told_of(cls, "__torch_dispatch__")
        made = _parameter_classes[cls] = type(cls)(cls.__name__, (cls, _asks_as_tensor(), Parameter), body)
    return made


def carried_parameter(data, requires_grad=True):
    """Parameter(data) for what a level carries: a leaf of its own, which modules take for a Parameter."""
    made = data.detach().requires_grad_(requires_grad)
    key = id(made)
    _carried[key] = weakref.ref(made, lambda _: _carried.pop(key, None))
    return made


def is_carried_parameter(value):
    """Whether a value is what `Parameter` made of one that a level carries."""
    found = _carried.get(id(value))
    return found is not None and found() is value


@atomic("nn::Parameter")
def init_parameter(self, data, requires_grad):
    """Parameter.__init__: share data's memory outside its graph. Nobody is asked."""
    was = unasked.set_disabled(True, True)
    try:
        _init_parameter(self, data, requires_grad)
    finally:
        unasked.set_disabled(*was)


def _init_parameter(self, data, requires_grad):
    if data is None:
        data = functions["empty"](0)
    if not isinstance(data, Tensor):
        raise TypeError(
            f"Parameter(): argument 'data' must be Tensor, not {class_name(data)}"
            f"{how_to_convert(data) or ': make one with tensor(data)'}"
        )
    if not isinstance(requires_grad, bool):
        raise TypeError(f"Parameter(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if requires_grad and not (data.dtype.is_floating_point or data.dtype.is_complex):
        raise RuntimeError(
            f"Only Tensors of floating point and complex dtype can require gradients, got "
            f"{data.dtype}: pass "
            "requires_grad=False, or convert the data first"
        )
    _core.share_memory_from(self, data)
    if type(data) not in (Tensor, Parameter):
        set_attributes(self, attributes_of(data))
    self.requires_grad = bool(requires_grad)


# ---- storage -------------------------------------------------------------------------------------------------------


def _resize_(self, *sizes, memory_format=None):
    """Another shape for this tensor, row-major over its memory; new elements are not set.

    memory_format: the order in which its dimensions lie from now on, also where the shape stays.
    """
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad: detach() the tensor first")
    if memory_format is preserve_format:
        raise RuntimeError(
            "resize_(): Unsupported memory format Preserve: there is no other tensor whose order could be kept. Use "
            "contiguous_format, or resize_as_()"
        )
    ordered = None
    if memory_format is not None:  # before anything is written: it does not suit each number of dimensions
        ordered = functions["empty"](sizes, dtype=self.dtype, device="meta", memory_format=memory_format).stride()
    before = self.untyped_storage().nbytes() if unset.fills() else None
    _core.resize(self, sizes)
    if before is not None:
        unset.fill_from(self, before)
    if ordered not in (None, self.stride()):
        block = self.untyped_storage()._storage
        set_geometry_from(self, _core.window(block, self.dtype, self.shape, ordered, self.storage_offset()))
    return self


def _resize_as_(self, other, *, memory_format=None):
    """The shape of another tensor for this one, row-major over its memory; new elements are not set.

    memory_format: the order in which its dimensions lie from now on; preserve_format for the other tensor's.
    """
    if memory_format is preserve_format:
        formats = {4: channels_last, 5: channels_last_3d}
        found = formats.get(other.dim())
        memory_format = found if found and other.is_contiguous(memory_format=found) else contiguous_format
    return _resize_(self, other.shape, memory_format=memory_format)


def _set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Show the memory of another tensor, or of a storage, from now on; nothing is copied. With nothing, none at all.

    Args:
        source: a tensor of the same dtype, or a storage: the whole of it where no size is given.
        storage_offset, size, stride: the window on the storage, in elements; row-major by default.
    """
    shown = _shown_by(self, source, storage_offset, size, stride)
    base = self._base
    for t, name in ((self, "a leaf"), (self if base is None else base, "a view of a leaf")):
        if is_grad_enabled() and t.requires_grad and t.is_leaf:
            raise RuntimeError(
                f"set_(): {name} Variable that requires grad is being used in an in-place operation. Work in no_grad()"
            )
    leave_base(self)
    if is_grad_enabled() and (self.requires_grad or (shown is source and source.requires_grad)):
        return get_slot("set_from_history")(self, shown)
    self.data = shown
    increment(self)  # a graph that saved it would read other numbers
    return self


def _wrong_kind(self, source):
    if isinstance(source, Tensor):
        return f"set_(): Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}"
    return (
        f"set_(): Expected a Storage of type {self.dtype} or an UntypedStorage, but got type {source.dtype}: untyped()"
    )


def _shown_by(self, source, offset, size, stride):
    """The tensor that `set_` makes of its arguments."""
    if source is None:
        nothing = None if self.is_meta else _core.storage_of(functions["empty"](0))
        return _core.window(nothing, self.dtype, (0,), (1,), 0)
    if isinstance(source, (Tensor, TypedStorage)) and source.dtype != self.dtype:
        raise RuntimeError(_wrong_kind(self, source))
    if isinstance(source, Tensor) and size is None and not offset:
        return source
    if not isinstance(source, (Tensor, TypedStorage, UntypedStorage)):
        raise TypeError(f"set_(): argument 'source' must be a tensor or a storage, not {class_name(source)}")
    block = source.untyped_storage() if isinstance(source, Tensor) else source.untyped()
    size = (block.nbytes() // self.element_size() - offset,) if size is None else tuple(size)
    if stride is None:
        stride = [1] * len(size)
        for i in range(len(size) - 2, -1, -1):
            stride[i] = stride[i + 1] * max(size[i + 1], 1)
    return _core.window(block._storage, self.dtype, size, stride, offset)


def _module_load(self, other, assign=False):
    """Another tensor, which a parameter or buffer is swapped with by `load_state_dict`, see `utils.swap_tensors`.

    Args:
        other: the loaded value.
        assign: take its memory and dtype instead of copying into this tensor's.
    """
    return other.detach() if assign else self.copy_(other).detach()


def _untyped_storage(self):
    """The memory as bytes; on meta what knows how many there would be up to the last element."""
    memory = _core.storage_of(self)
    if memory is not None:
        return storage_over(memory)
    last = sum((size - 1) * step for size, step in zip(self.shape, self.stride()))
    count = self.storage_offset() + last + 1 if self.numel() else 0
    return storage_over(None, count * self.element_size())


def _storage_type(self):
    """The class of storages of its dtype, such as FloatStorage; None where there is none."""
    from tinygrad_ext.tensor import legacy_storage  # lazy: few ask for it

    return legacy_storage.class_of(self.dtype) if self.device.type == "cpu" else None


METHODS = {
    "as_subclass": _subclass.as_subclass,
    "_make_subclass": staticmethod(_subclass.make_subclass),
    "_make_wrapper_subclass": staticmethod(_subclass.make_wrapper_subclass),
    "untyped_storage": _untyped_storage,
    "storage_type": _storage_type,
    "storage": lambda self: storage_shown(self),
    "is_pinned": lambda self: False,
    "resize_": _resize_,
    "resize_as_": _resize_as_,
    "set_": _set_,
    "module_load": _module_load,
}


def fill_slots():
    """Hand the functions to the core."""
    set_slot("reduce", reduce_tensor)
    set_slot("deepcopy", deepcopy_tensor)
    set_slot("fill_parameter", init_parameter)
    _core.set_parameter_class(parameter_class, carried_parameter)
