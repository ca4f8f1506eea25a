# cython: language_level=3
"""Tensor methods that are no ops: hooks, retained gradients, detaching in place.

They change a tensor's place in the graph and compute nothing, so they have no record: there is nothing to differentiate. Hooks
stand with the node that made the tensor, those of a leaf with the leaf: the node that fills its `.grad` is owned by
the graphs that use the leaf, and goes with them.
"""
import weakref

from tinygrad_ext.core.grad.edges cimport grad_fn_of, living_accumulator
from tinygrad_ext.core.grad.engine cimport backward_scalar
from tinygrad_ext.core.grad.node cimport Hooks, Node, hooks_of, shown
from tinygrad_ext.core.call.places cimport note_mutation
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.tensor cimport (
    CONTIGUOUS, DETACHED_VIEW, DIFF_VIEW, INFERENCE, READONLY, REQUIRES_GRAD, RETAINS_GRAD, Tensor, alias, bump, exact,
    expose, leave_accumulator, needs_grad, set_geometry, set_version, version_of,
)
from tinygrad_ext.core.data.types cimport is_float, uint32_t, uint8_t
from tinygrad_ext.core.grad.hooks import add_hook


def grad_fn(Tensor t):
    """The node that made t, made anew for a view whose base was written to."""
    node = grad_fn_of(t)
    return None if node is None else shown(<Node>node)


cdef Hooks _leaf_hooks(Tensor t):
    """Hooks of a leaf: kept with the leaf, since its AccumulateGrad comes and goes."""
    expose(t)
    if t.extra is None:
        t.extra = {}
    if "hooks" not in t.extra:          # those of its node, on which something may hang already
        t.extra["hooks"] = hooks_of(<Node>t.accumulator) if living_accumulator(t) != NULL else Hooks.__new__(Hooks)
    return t.extra["hooks"]


def register_hook(Tensor self, hook):
    """Call hook(grad) when this tensor's gradient is computed; a returned tensor replaces it. Returns a handle.

    Raises RuntimeError when the tensor needs no gradient.
    """
    cdef Hooks h
    if not callable(hook):
        raise TypeError(f"register_hook(): argument 'hook' must be callable, not {type(hook).__name__}")
    if not needs_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(self) is not None:
        return (<Node>self.node)._register_tensor_hook(self.output_nr, hook)
    h = _leaf_hooks(self)
    if h.tensor is None:
        h.tensor = {0: []}
    return add_hook(h.tensor[0], hook)


def register_post_accumulate_grad_hook(Tensor self, hook):
    """Call hook(tensor) after this leaf's ``.grad`` has been filled. Returns a handle."""
    cdef Hooks h
    if grad_fn_of(self) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if not needs_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    h = _leaf_hooks(self)
    if h.accumulated is None:
        h.accumulated = []
    return add_hook(h.accumulated, hook)


def hooks_of_leaf(Tensor self):
    """The hooks on a leaf's gradient, and those after it was filled: two lists of functions."""
    cdef Hooks h = None if self.extra is None else self.extra.get("hooks")
    if h is None:
        return [], []
    return [fn for _, fn in (h.tensor or {}).get(0, ())], [fn for _, fn in h.accumulated or ()]


def backward(Tensor self, gradient=None, retain_graph=None, bint create_graph=False, inputs=None):
    """Add the gradients of this tensor into the leaves' ``.grad``; see `autograd.backward`."""
    if gradient is None and inputs is None and self.count == 1 and is_float(self.tid) and exact(self):
        backward_scalar(self, create_graph if retain_graph is None else retain_graph, create_graph)
    else:
        slot("backward")(self, gradient, retain_graph, create_graph, inputs=inputs)


def retain_grad(Tensor self):
    """Let ``.grad`` be filled for this tensor, though it is not a leaf."""
    if not needs_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if grad_fn_of(self) is None or self.bits & RETAINS_GRAD:
        return
    (<Node>self.node)._retain(self.output_nr, weakref.ref(self))
    self.bits |= RETAINS_GRAD


def put_grad(Tensor self, grad):
    """Let `.grad` be this tensor, or None, whatever it is; for who puts it back."""
    self.grad_ = grad


def detach_(Tensor self):
    """Cut this tensor from its graph: it becomes a leaf that needs no gradient."""
    if self.bits & DIFF_VIEW:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self.node = None
    self.bits &= ~REQUIRES_GRAD
    return self


def leave_base(Tensor self):
    """Let self be a view of nothing, with the history it has now; for who gives it other memory."""
    if self.base is not None:
        if not self.bits & DETACHED_VIEW:
            grad_fn_of(self)
        self.base = None
    self.bits &= ~(DIFF_VIEW | DETACHED_VIEW)


def increment(Tensor self):
    """Count a write to self that the engine did not see; those of inference mode have no count."""
    if self.bits & INFERENCE:
        return
    bump(self)
    note_mutation(self)


def set_geometry_from(Tensor self, Tensor other):
    """Let self be what `other` is in memory and shape."""
    set_geometry(self, other)
    return self


def swap_contents(Tensor self not None, Tensor other not None, on_backward):
    """Let each of two tensors be what the other one is but for its class and attributes: memory, history, gradient, hooks.

    A graph that leads to one as a leaf calls on_backward with its gradients, which raises: they belong to what it was.
    What a graph has saved counts as written to.
    """
    cdef Tensor t, was
    cdef object node, base, extra
    cdef uint8_t kept = READONLY | INFERENCE | CONTIGUOUS, bits = self.bits     # set_geometry has those
    cdef uint32_t view_version, version = max(version_of(self), version_of(other)) + 1     # both differ from what was saved
    cdef int nr
    if self is other:
        return
    for t in (self, other):
        expose(t)
        if living_accumulator(t) != NULL:
            (<Node>t.accumulator).hooks = None      # those are the leaf's
            (<Node>t.accumulator).register_prehook(on_backward)
        if t.accumulator != NULL:
            leave_accumulator(t)
        if t.view_version == version_of(t):
            t.view_version = version
        set_version(t, version)
        note_mutation(t)
    was = alias(self)
    was.counter = self.counter
    set_geometry(self, other)
    set_geometry(other, was)
    self.bits = (self.bits & kept) | (other.bits & ~kept)
    other.bits = (other.bits & kept) | (bits & ~kept)
    node, base, extra, nr, view_version = self.node, self.base, self.extra, self.output_nr, self.view_version
    self.node, self.base, self.extra = other.node, other.base, other.extra
    self.output_nr, self.view_version = other.output_nr, other.view_version
    other.node, other.base, other.extra, other.output_nr, other.view_version = node, base, extra, nr, view_version
    self.grad_, other.grad_ = other.grad_, self.grad_
