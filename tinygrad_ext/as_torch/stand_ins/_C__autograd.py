"""torch._C._autograd: what was saved for a backward pass, and whether hooks may be about it."""

from tinygrad_ext.core.grad.saved import SavedTensor, refuse_hooks

__all__ = ["SavedTensor"]


def _saved_tensors_hooks_is_enabled():
    """Whether saved_tensors_hooks may be entered."""
    before = refuse_hooks(None)
    refuse_hooks(before)
    return before is None
