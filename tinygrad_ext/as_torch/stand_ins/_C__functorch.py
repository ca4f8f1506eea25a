"""torch._C._functorch: questions about values inside of transforms."""

from tinygrad_ext.func.batch import Batch as _Batch

from . import absent

_WHY = "levels of transforms are opened by torch.func alone"
globals().update(
    absent.functions(
        "_C._functorch", "_add_batch_dim _remove_batch_dim get_unwrapped maybe_get_bdim current_level", _WHY
    )
)


def is_batchedtensor(tensor):
    """Whether vmap carries the tensor."""
    return isinstance(getattr(tensor, "level", None), _Batch)


def is_functorch_wrapped_tensor(tensor):
    """Whether a transform carries the tensor."""
    return hasattr(tensor, "level")
