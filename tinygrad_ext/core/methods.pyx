# cython: language_level=3
"""Tensor methods that are no ops: hooks, retained gradients, detaching in place."""
from cpython.object cimport PyObject
from tinygrad_ext.core.node cimport AccumulateGrad, Hooks, Node, accumulator, grad_fn_of
from tinygrad_ext.core.tensor cimport DIFF_VIEW, REQUIRES_GRAD, RETAINS_GRAD, Tensor, needs_grad, set_geometry
from tinygrad_ext.core import tensor as _tensor


def grad_fn(Tensor t):
    """The node that made t, made anew for a view whose base was written to."""
    return grad_fn_of(t)


cdef Hooks _leaf_hooks(Tensor t):
    """Hooks of a leaf: kept with the leaf, since its AccumulateGrad comes and goes."""
    if t.extra is None:
        t.extra = {}
    if "hooks" not in t.extra:
        t.extra["hooks"] = Hooks.__new__(Hooks)
        if t.accumulator != NULL:
            (<Node>t.accumulator).hooks = t.extra["hooks"]
    return t.extra["hooks"]


def register_hook(Tensor self, hook):
    """Call hook(grad) when this tensor's gradient is computed; a returned tensor replaces it. Returns a handle.

    Raises RuntimeError when the tensor needs no gradient.
    """
    from tinygrad_ext.core.hooks import add_hook
    cdef Hooks h
    if not callable(hook):
        raise TypeError(f"register_hook(): argument 'hook' must be callable, not {type(hook).__name__}")
    if not needs_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.node is not None:
        return (<Node>grad_fn_of(self))._register_tensor_hook(self.output_nr, hook)
    h = _leaf_hooks(self)
    if h.tensor is None:
        h.tensor = {0: []}
    return add_hook(h.tensor[0], hook)


def register_post_accumulate_grad_hook(Tensor self, hook):
    """Call hook(tensor) after this leaf's ``.grad`` has been filled. Returns a handle."""
    from tinygrad_ext.core.hooks import add_hook
    cdef Hooks h
    if self.node is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if not needs_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    h = _leaf_hooks(self)
    if h.accumulated is None:
        h.accumulated = []
    return add_hook(h.accumulated, hook)


def mark_retains_grad(Tensor self):
    """Note that `.grad` of this non-leaf is filled."""
    self.bits |= RETAINS_GRAD


def detach_(Tensor self):
    """Cut this tensor from its graph: it becomes a leaf that needs no gradient."""
    if self.bits & DIFF_VIEW:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self.node = None
    self.bits &= ~REQUIRES_GRAD
    return self


def set_geometry_from(Tensor self, Tensor other):
    """Let self be what `other` is in memory and shape."""
    set_geometry(self, other)
    return self


def share_version(Tensor self):
    """Number of in-place writes to the storage, for tests."""
    return self._version
