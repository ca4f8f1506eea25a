"""Hooks around a module's call: where they are kept, how they are added, in which order they run.

``Module.__call__`` tests two sets, one of the instance and one of all modules, and comes here
only when one of them is not empty. Instance hooks live in the module, hooks of all modules in
the ``_global_*`` tables below. Global hooks run before a module's own.
"""

import warnings

from tinygrad_ext.core.call.boundary import boundary

from ..utils.hooks import RemovableHandle
from .backward_hooks import BackwardHook, register_legacy
from .registry import HookTable

_global_live = set()


def _global_table(name):
    return HookTable(_global_live, name)


_global_forward_pre_hooks = _global_table("forward_pre")
_global_forward_hooks = _global_table("forward")
_global_backward_pre_hooks = _global_table("backward_pre")
_global_backward_hooks = _global_table("backward")
# Marks by handle id; they never make a call slower on their own, so they have a `live` of their own.
_global_forward_hooks_with_kwargs = HookTable(set(), "with_kwargs")
_global_forward_hooks_always_called = HookTable(set(), "always_called")
_global_is_full_backward_hook = None

MIXED = "Cannot use both regular backward hooks and full backward hooks"


def _add(table, hook, *, prepend=False, marks=()):
    """Put ``hook`` into ``table`` and its handle id into each of ``marks``; returns the handle."""
    handle = RemovableHandle(table, extra_dict=list(marks))
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
        for mark in marks:
            mark.move_to_end(handle.id, last=False)
    return handle


@boundary
def register_module_forward_pre_hook(hook):
    """Call ``hook(module, args)`` before the forward of every module."""
    return _add(_global_forward_pre_hooks, hook)


@boundary
def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after the forward of every module."""
    marks = []
    if with_kwargs:
        marks.append(_global_forward_hooks_with_kwargs)
    if always_call:
        marks.append(_global_forward_hooks_always_called)
    return _add(_global_forward_hooks, hook, marks=marks)


@boundary
def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` before the backward of every module."""
    return _add(_global_backward_pre_hooks, hook)


@boundary
def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` after the backward of every module."""
    return _add_global_backward(hook, full=True)


@boundary
def register_module_backward_hook(hook):
    """The older form of `register_module_full_backward_hook`; sees only the last op of a module."""
    return _add_global_backward(hook, full=False)


def _add_global_backward(hook, full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook not in (None, full):
        raise RuntimeError(f"{MIXED} as a global Module hook. Please use only one of them.")
    _global_is_full_backward_hook = full
    return _add(_global_backward_hooks, hook)


@boundary
class Hooking:
    """The part of Module that holds hooks and runs a call that has some."""

    def _init_hooks(self):
        set_plain = self.__dict__
        live = set_plain["_live_hooks"] = set()
        set_plain["_is_full_backward_hook"] = None
        for name in CALL_TABLES:
            set_plain[name] = HookTable(live, name)
        for name in MARK_TABLES:
            set_plain[name] = HookTable(set(), name)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before ``forward``; what it returns replaces the arguments.

        Args:
            prepend: run before the hooks that are there already.
            with_kwargs: call ``hook(module, args, kwargs)``, which returns None or ``(args, kwargs)``.
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _add(self._forward_pre_hooks, hook, prepend=prepend, marks=marks)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after ``forward``; what it returns replaces the output.

        Args:
            prepend: run before the hooks that are there already.
            with_kwargs: call ``hook(module, args, kwargs, output)``.
            always_call: call it with output None when ``forward`` raised.
        """
        marks = []
        if with_kwargs:
            marks.append(self._forward_hooks_with_kwargs)
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return _add(self._forward_hooks, hook, prepend=prepend, marks=marks)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known.

        A tuple returned replaces them. Gradients of outputs that are not tensors are None.
        """
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        A tuple returned replaces ``grad_input``, which has one entry per positional argument.
        """
        self._choose_backward_kind(full=True)
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """The older form of `register_full_backward_hook`; its gradients are those of the last op only."""
        self._choose_backward_kind(full=False)
        return _add(self._backward_hooks, hook)

    def _choose_backward_kind(self, full):
        if self._is_full_backward_hook not in (None, full):
            raise RuntimeError(f"{MIXED} on a single Module. Please use only one of them.")
        self._is_full_backward_hook = full

    def _call_with_hooks(self, args, kwargs):
        """Run ``forward`` with everything registered around it."""
        call = _Call(args, kwargs)
        try:
            return self._call_hooks_in_order(call)
        except Exception:
            self._call_always_hooks(call)
            raise

    def _call_hooks_in_order(self, call):
        self._run_forward_pre_hooks(call)
        full, legacy = self._backward_hooks_by_kind()
        pre = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        boundary = BackwardHook(self, full, pre) if full or pre else None
        if boundary is not None:
            call.args = boundary.watch_inputs(call.args)
        call.result = self.forward(*call.args, **call.kwargs)
        for key, hook, with_kwargs, always in self._forward_hooks_in_order():
            if always:
                call.done.add(key)
            replaced = call.forward_hook(self, hook, with_kwargs)
            if replaced is not None:
                call.result = replaced
        if boundary is not None:
            call.result = boundary.watch_outputs(call.result)
        if legacy:
            register_legacy(self, legacy, call.args, call.result)
        return call.result

    def _run_forward_pre_hooks(self, call):
        hooks = [(hook, False) for hook in _global_forward_pre_hooks.values()]
        marked = self._forward_pre_hooks_with_kwargs
        hooks += [(hook, key in marked) for key, hook in self._forward_pre_hooks.items()]
        for hook, with_kwargs in hooks:
            replaced = hook(self, call.args, call.kwargs) if with_kwargs else hook(self, call.args)
            if replaced is None:
                continue
            if with_kwargs:
                call.args, call.kwargs = _args_and_kwargs(replaced)
            else:
                call.args = replaced if isinstance(replaced, tuple) else (replaced,)

    def _forward_hooks_in_order(self):
        """List ``(key, hook, wants kwargs, call always)`` of the global hooks, then of our own."""
        sources = (
            (_global_forward_hooks, _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called),
            (self._forward_hooks, self._forward_hooks_with_kwargs, self._forward_hooks_always_called),
        )
        return [
            (key, hook, key in with_kwargs, key in always)
            for hooks, with_kwargs, always in sources
            for key, hook in hooks.items()
        ]

    def _backward_hooks_by_kind(self):
        full, legacy = [], []
        (full if _global_is_full_backward_hook else legacy).extend(_global_backward_hooks.values())
        (full if self._is_full_backward_hook else legacy).extend(self._backward_hooks.values())
        return full, legacy

    def _call_always_hooks(self, call):
        """After an exception: give the ``always_call`` hooks that did not run their chance."""
        for key, hook, with_kwargs, always in self._forward_hooks_in_order():
            if not always or key in call.done:
                continue
            try:
                replaced = call.forward_hook(self, hook, with_kwargs)
                if replaced is not None:
                    call.result = replaced
            except Exception as error:
                # The first exception is the one the user must see; this one is only mentioned.
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced "
                    f"as another error was raised in forward: {error}",
                    stacklevel=2,
                )


class _Call:
    """One call on its way through the hooks; `done` has the keys of the always-called ones that ran."""

    __slots__ = ("args", "done", "kwargs", "result")

    def __init__(self, args, kwargs):
        self.args = args
        self.kwargs = kwargs
        self.result = None
        self.done = set()

    def forward_hook(self, module, hook, with_kwargs):
        if with_kwargs:
            return hook(module, self.args, self.kwargs, self.result)
        return hook(module, self.args, self.result)


CALL_TABLES = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
MARK_TABLES = (
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)


def _args_and_kwargs(returned):
    if isinstance(returned, tuple) and len(returned) == 2:
        return returned
    raise RuntimeError(
        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
        f"but got {returned!r}. Return (args, kwargs) to keep them."
    )
