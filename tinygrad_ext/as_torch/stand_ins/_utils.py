"""torch._utils: helpers that libraries for data and for several processes import."""

import sys
import traceback

import tinygrad_ext as _tg
from tinygrad_ext.archive import sparse_parts as _sparse_parts
from tinygrad_ext.tensor.typed_storage import TypedStorage as _TypedStorage


class KeyErrorMessage(str):
    """A message that KeyError shows as it is."""

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception as text, to be raised in another process or thread."""

    def __init__(self, exc_info=None, where="in background"):
        kind, error, tb = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, tb))
        self.where = where

    def reraise(self):
        """Raise it here, with the text of where it came from."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        try:
            error = self.exc_type(message)
        except Exception:  # it takes other arguments
            raise RuntimeError(message) from None
        raise error


def _element_size(dtype):
    """Bytes of an element of a dtype."""
    return _tg.empty((), dtype=dtype).element_size()


def _flatten_dense_tensors(tensors):
    """All tensors as one vector."""
    return _tg.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """The vector in parts of the tensors' shapes."""
    parts, at = [], 0
    for tensor in tensors:
        parts.append(flat[at : at + tensor.numel()].view_as(tensor))
        at += tensor.numel()
    return tuple(parts)


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device; -1 for the cpu, where that is allowed."""
    if isinstance(device, int):
        return device
    if allow_cpu:
        return -1
    raise ValueError(f"Expected a non cpu device, but got: {device}")


def _get_available_device_type():
    """None: no accelerator is here."""
    return None


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor that shows a storage."""
    return _tg.empty(0, dtype=storage.dtype).set_(storage, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """What a pickle of a tensor calls."""
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    made.requires_grad = requires_grad
    if metadata:
        made = made.conj() if metadata.get("conj") else made
        made = made._neg_view() if metadata.get("neg") else made
    return made


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """What a pickle of a tensor calls whose dtype has no class of storages."""
    typed = _TypedStorage(wrap_storage=storage, dtype=dtype)
    return _rebuild_tensor_v2(typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """What a pickle of a tensor without memory calls."""
    return _tg.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_sparse_tensor(layout, data):
    """What a pickle of a sparse tensor calls."""
    return _sparse_parts.made(layout, data)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """What a pickle of a parameter calls."""
    return _tg.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """What a pickle of a parameter with attributes of its own calls."""
    return _set_obj_state(_tg.nn.Parameter(data, requires_grad), state)


def _set_obj_state(obj, state):
    """An object with the attributes that a pickle holds of it: a dict, or one and another of its slots."""
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            setattr(obj, name, value)
    return obj
