"""torch._C._functorch: questions about values inside of transforms."""

import enum

from tinygrad_ext.func.batch import Batch as _Batch
from tinygrad_ext.func.dual import Dual as _Dual

from . import absent

_WHY = "levels of transforms are opened by torch.func alone"
globals().update(absent.functions("_C._functorch", "_add_batch_dim _remove_batch_dim current_level", _WHY))


def is_batchedtensor(tensor):
    """Whether vmap carries the tensor."""
    return isinstance(getattr(tensor, "level", None), _Batch)


def is_functorch_wrapped_tensor(tensor):
    """Whether a transform carries the tensor."""
    return hasattr(tensor, "level")


def is_gradtrackingtensor(tensor):
    """Whether forward mode carries the tensor; reverse mode carries none, it runs on the tensors of eager mode."""
    return isinstance(getattr(tensor, "level", None), _Dual)


def get_unwrapped(tensor):
    """What the innermost transform carries the tensor for: all of the batch, or the value beside its tangent."""
    if is_gradtrackingtensor(tensor):
        return tensor.level.primal(tensor)
    if is_batchedtensor(tensor):
        return tensor.value
    raise RuntimeError("No wrappers present! get_unwrapped() takes a tensor that a transform carries")


def maybe_get_bdim(tensor):
    """The dimension of the batch in what `get_unwrapped` gives, -1 where there is none."""
    return 0 if is_batchedtensor(tensor) else -1


def _switch(on, *setters):
    """A function that says what a switch was told, which changes nothing: rules of batches are there or refused."""
    told = [on]

    def setter(enabled):
        told[0] = bool(enabled)

    globals().update(dict.fromkeys(setters, setter))
    return lambda: told[0]


_is_vmap_fallback_enabled = _switch(True, "_set_vmap_fallback_enabled")
_are_warned = _switch(False, "_set_vmap_fallback_warning_enabled")
TransformType = enum.Enum("TransformType", "Torch Grad Jvp Functionalize Vmap")
RandomnessType = enum.Enum("RandomnessType", "Error Same Different")


def reshape_dim_into(src, dst, x):
    """A tensor whose dimension src is part of dimension dst of what is left."""
    src %= x.dim()
    dst %= x.dim() - 1
    moved = x.movedim(src, dst)
    return moved.flatten(dst, dst + 1)


def reshape_dim_outof(src, size1, x):
    """A tensor whose dimension src is two, the first of the size given."""
    src %= x.dim()
    if x.size(src) % size1:
        raise RuntimeError(f"reshape_dim_outof: {x.size(src)} elements of dimension {src} are not {size1} equal parts")
    return x.unflatten(src, (size1, x.size(src) // size1))
