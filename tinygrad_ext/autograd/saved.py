"""Hooks on the tensors that a graph keeps for its backward pass."""

import contextlib
import threading
import weakref

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.slots import get_slot, set_slot
from tinygrad_ext.core.grad.saved import check_hooks, guard, pop_hooks, push_hooks, refuse_hooks, storage_of


@boundary
class saved_tensors_hooks:
    """Inside the `with`, what ops and Functions save for backward goes through a pair of hooks.

    pack_hook(tensor) is called once for each saved tensor, at once and without recording; what it returns is kept in
    the tensor's place. unpack_hook(packed) is called when the backward pass needs the tensor and returns it. Of nested
    pairs the innermost is used; each thread has its own.

    Raises TypeError for hooks that cannot be called, and at use when unpack_hook returns no tensor; RuntimeError when
    pack_hook writes to its argument, or hooks are disabled here.

        def pack(tensor):
            return tensor.shape, tensor.half()

        def unpack(packed):
            return packed[1].float()

        with saved_tensors_hooks(pack, unpack):
            loss = model(x).sum()
        loss.backward()
    """

    def __init__(self, pack_hook, unpack_hook):
        check_hooks("saved_tensors_hooks", pack_hook, unpack_hook)
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc):
        pop_hooks()


@boundary
class save_on_cpu(saved_tensors_hooks):
    """Inside the `with`, saved tensors wait on the CPU and go back to their device when they are needed.

    pin_memory: page-locked memory, which only devices with a memory of their own have a use for; here it means a copy.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            kept = tensor.clone() if pin_memory else tensor.cpu()
            return tensor.device, kept, kept._version

        super().__init__(pack, _from_cpu)


def _from_cpu(packed):
    device, kept, version = packed
    if kept._version != version:  # the tensor itself was kept: the engine does not check what hooks packed
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor "
            f"of shape {list(kept.shape)} kept by save_on_cpu is at version {kept._version}; expected version "
            f"{version} instead. Change a clone of it, or pass pin_memory=True, which copies."
        )
    return kept.to(device)


@boundary
@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Inside the `with`, entering saved_tensors_hooks raises RuntimeError(error_message)."""
    if not isinstance(error_message, str):
        raise TypeError(
            f"disable_saved_tensors_hooks(): argument 'error_message' must be str, not {type(error_message).__name__}"
        )
    before = refuse_hooks(error_message)
    try:
        yield
    finally:
        refuse_hooks(before)


# ---- writing to saved tensors --------------------------------------------------------------------------------------

_open = threading.local()
_guarded = {}  # identity of a storage -> weak references to the _Kept tensors in it


class _Kept:
    """A saved tensor, which becomes a clone just before somebody writes to its memory."""

    __slots__ = ("__weakref__", "held")

    def __init__(self, tensor):
        self.held = tensor


class _MutationContext:
    """What `allow_mutation_on_saved_tensors` yields: the tensors saved inside, and whether they may still be used."""

    def __init__(self):
        self.kept = weakref.WeakSet()

    def pack(self, tensor):
        kept = _Kept(tensor)
        self.kept.add(kept)
        place = storage_of(tensor)
        if place is not None:
            _guarded.setdefault(place[0], weakref.WeakSet()).add(kept)
            guard(tensor)
        return kept

    def unpack(self, kept):
        if getattr(_open, "context", None) is not self or kept.held is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded. Call backward inside the with."
            )
        return kept.held

    def clear(self):
        """Let go of everything saved so far; its graphs cannot be run any more."""
        for kept in self.kept:
            kept.held = None
        self.kept.clear()


def _before_write(storage):
    """An op is about to write to a storage: whatever is saved there moves to memory of its own."""
    for kept in list(_guarded.pop(storage, ())):
        if kept.held is not None:
            kept.held = get_slot("detached_clone")(kept.held)


set_slot("before_write", _before_write)


@boundary
@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Inside the `with`, in-place ops may write to saved tensors: these are cloned just before.

    The graphs recorded inside must be run inside too: AssertionError afterwards. Yields an object whose `clear()` lets
    go of what is saved. Raises RuntimeError when nested.
    """
    if getattr(_open, "context", None) is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutationContext()
    with saved_tensors_hooks(context.pack, context.unpack):
        _open.context = context
        try:
            yield context
        finally:
            _open.context = None
            context.clear()
