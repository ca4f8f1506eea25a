"""Loads one plugin: a transaction behind a fence.

Other threads that want the same plugin wait for it; a circle of plugins or threads that wait for each other is told
and not waited for. No lock is held while a plugin's code runs. A fork waits for the loads of other threads: their
import locks would stay taken in the child for ever.
"""

import importlib
import os
import sys
import threading

from tinygrad_ext.registry import scope

from . import fence, settings, table
from .model import ACTIVE, FAILED, FOUND, INCOMPATIBLE, LOADING, Incompatible, PluginError

PATIENCE = 120.0  # seconds to wait for another thread's load before saying so
_changed = threading.Condition()
_waiting = {}  # thread -> plugin it waits for
FORK_PATIENCE = 10.0  # seconds that a fork waits for the loads of other threads


def load(plugin, raising=False):
    """Load a plugin unless that is done or forbidden; returns whether it is active.

    raising: let the plugin's exception out, as TINYGRAD_EXT_STRICT_PLUGINS does, instead of a warning.
    """
    with _changed:
        _wait_for_others(plugin)
        if plugin.state != FOUND or table.why_not(plugin) is not None:
            return plugin.state == ACTIVE
        plugin.state, plugin.thread = LOADING, threading.get_ident()
    error = _transact(plugin)
    if error is None:
        return True
    if isinstance(error, KeyboardInterrupt) or raising or settings.strict():
        raise error
    fence.warn(plugin, error)
    return False


def _wait_for_others(plugin):
    me = threading.get_ident()
    while plugin.state == LOADING and plugin.thread != me:
        if _waits_for(plugin.thread, me):
            raise PluginError(f"{plugin.title} is being loaded by a thread that waits for what this thread is loading")
        _waiting[me] = plugin
        try:
            if not _changed.wait(PATIENCE):
                raise PluginError(
                    f"{plugin.title} is still being loaded by another thread after {PATIENCE:.0f} seconds"
                )
        finally:
            del _waiting[me]


def _waits_for(thread, me):
    """Whether a thread waits, perhaps through others, for a plugin that `me` is loading."""
    seen = set()
    while thread in _waiting and thread not in seen:
        seen.add(thread)
        thread = _waiting[thread].thread
        if thread == me:
            return True
    return False


def _transact(plugin):
    """Import the plugin and run its hooks; on any exception undo everything and return it."""
    before, started, error = set(sys.modules), fence.now(), None
    plugin.before = {m for m in before if plugin.owns(m)}
    try:
        with scope.entered(plugin.scope):
            from . import hooks  # lazy: brings pluggy, for which a program without plugins does not pay

            hooks.run(plugin, _target(plugin))
    except BaseException as raised:
        error = raised
        plugin.scope.undo()
        for other in [plugin, *fence.culprits(plugin, raised)]:
            if other.state != ACTIVE:
                fence.forget_modules(other, before)
    plugin.seconds = fence.now() - started
    if error is None:
        fence.claim(plugin, before)
        _set(plugin, ACTIVE)
    elif isinstance(error, KeyboardInterrupt):
        plugin.stage = "import"
        _set(plugin, FOUND)
    else:
        plugin.failure = fence.failure_of(plugin, error, plugin.seconds)
        _set(plugin, INCOMPATIBLE if isinstance(error, Incompatible) else FAILED)
    return error


def _target(plugin):
    """The module or object with the hooks."""
    if plugin.target is not None:
        return plugin.target
    module, _, attributes = plugin.value.partition(":")
    found = importlib.import_module(module.strip())
    for name in filter(None, attributes.strip().split(".")):
        found = getattr(found, name)
    return found


def _set(plugin, state):
    with _changed:
        plugin.state, plugin.thread = state, None
        _changed.notify_all()


def unload(plugin, everything=False):
    """Undo all that a plugin added; the modules it imported leave, so that a later load starts afresh.

    everything: its modules that others imported before it was loaded leave as well.
    """
    with _changed:
        _wait_for_others(plugin)
        if plugin.state == LOADING:
            raise PluginError(f"{plugin.title} cannot be unloaded by itself while it is being loaded")
        plugin.scope.undo()
        if everything:
            fence.forget_modules(plugin)
        elif plugin.state == ACTIVE and plugin.target is None:
            fence.forget_modules(plugin, plugin.before)
        else:  # not loaded, or an object of the program: so are the modules
            fence.release(plugin)
        plugin.reset()
        _changed.notify_all()


def circle(plugin):
    """Whether this thread is in the middle of loading the plugin."""
    return plugin.state == LOADING and plugin.thread == threading.get_ident()


def _loading_elsewhere():
    me = threading.get_ident()
    return [p for p in table.known() if p.state == LOADING and p.thread != me]


def _before_fork():
    with _changed:
        _changed.wait_for(lambda: not _loading_elsewhere(), FORK_PATIENCE)


def _after_fork():
    """In the child only the thread that forked goes on."""
    global _changed
    _changed = threading.Condition()
    _waiting.clear()
    table.after_fork()
    for plugin in _loading_elsewhere():
        plugin.scope.undo()
        plugin.reset()
        plugin.problem = (
            FAILED,
            "another thread was loading it when this process was forked from its parent; load it before that",
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
