"""All plugins known to this process: found by one scan, or registered by the program."""

import difflib
import threading
import warnings

from . import settings, undeclared
from .model import ACTIVE, CONFLICT, DISABLED, FOUND, LOADING, PluginError, PluginWarning

_lock = threading.RLock()
_scanned = None  # list of plugins, None before the scan
_registered = []  # by plugins.register


def everything():
    """Every Plugin; scans the installed distributions the first time, and once only."""
    global _scanned
    if _scanned is None:
        with _lock:
            if _scanned is None:
                from .scan import scan  # lazy: reading metadata takes long, and only a scan needs it

                found, problems = scan()
                _scanned = found
                for text in [*problems, *_misnamed(found)]:
                    warnings.warn(text, PluginWarning, stacklevel=4)
    return [*_registered, *_scanned]


def known():
    """The plugins known so far, without a scan."""
    return [*_registered, *(_scanned or ())]


def after_fork():
    """A lock that another thread of the parent held would never be released."""
    global _lock
    _lock = threading.RLock()


def rescan():
    """Look again at what is installed. Plugins that are loaded stay, whatever version is found beside them."""
    global _scanned
    from .scan import scan  # lazy: as in everything()

    undeclared.forget()
    with _lock:
        tried = {(p.owner, p.value, p.location): p for p in _scanned or () if p.state != FOUND}
        loaded = {(p.owner.distribution, p.value): p for p in tried.values() if p.state in (ACTIVE, LOADING)}
        found, _ = scan()
        fresh = [p for p in found if (p.owner.distribution, p.value) not in loaded]
        fresh = [tried.get((p.owner, p.value, p.location), p) for p in fresh]
        _scanned = sorted([*loaded.values(), *fresh], key=lambda p: (p.name, p.owner.distribution))


def add(plugin):
    """Take in a plugin of the program's own. PluginError when the name is taken."""
    for other in everything():
        if other.name == plugin.name and why_not(other) is None:
            raise PluginError(
                f"plugins.register: the name '{plugin.name}' is taken by {other.title}. "
                f"Say plugins.disable('{other.owner.distribution}') first, or choose another name"
            )
    _registered.append(plugin)


def registered():
    """Plugins of the program's own."""
    return _registered


def exchange(registered, scanned):
    """Put other plugins in the place of those known, for a test; returns (registered, scanned) as they were.

    scanned: a list, or None to scan again when somebody asks.
    """
    global _scanned
    with _lock:
        before = [*_registered], _scanned
        _registered[:], _scanned = registered, scanned
    return before


def remove(plugin):
    """Forget a plugin of the program's own."""
    if plugin in _registered:
        _registered.remove(plugin)


def _misnamed(found):
    known = {name for p in found for name in settings.names_of(p)}
    for name, key in settings.named():
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), 1)
            yield f"{key} names '{name}', and no installed plugin is called so" + (
                f"; did you mean '{near[0]}'?" if near else ""
            )


def why_not(plugin):
    """(state, reason) for which the plugin must not be loaded, else None."""
    if plugin.problem is not None:
        return plugin.problem
    reason = settings.why_disabled(plugin)
    if reason is not None:
        return DISABLED, reason
    rivals = _rivals(plugin)
    if rivals:
        return CONFLICT, _conflict(plugin, rivals)
    return None


def _rivals(plugin):
    """Enabled plugins of other distributions that declare a plugin of the same name, or the same device."""
    return [
        p
        for p in everything()
        if p is not plugin and _claimed(plugin, p) and p.problem is None and settings.why_disabled(p) is None
    ]


def _claimed(plugin, rival):
    """What both declare, in words; "" when that is nothing."""
    for device in plugin.devices:
        if device in rival.devices:
            return f"device '{device}'"
    return f"plugin '{plugin.name}'" if plugin.namespaces and rival.namespaces and plugin.name == rival.name else ""


def _conflict(plugin, rivals):
    both = sorted([plugin, *rivals], key=lambda p: p.owner)
    claimed = _claimed(plugin, rivals[0])
    more = f", '{plugin.name}.<more>' adds to the same namespace" if claimed.startswith("plugin") else ""
    claims = " and ".join(f"{p.owner} in {p.location or 'this program'} ({p.entry_points[0]})" for p in both)
    return (
        f"several distributions declare a {claimed}: {claims}. None of them is loaded. Ways out: disable "
        f"all but one, as in TINYGRAD_EXT_DISABLE_PLUGINS={both[-1].owner.distribution}; uninstall all but one; or ask "
        f"an author to rename the entry point{more}"
    )


def select(name):
    """Plugins called by their name, namespace or distribution. PluginError, with near misses, when there is none."""
    wanted = settings.plain(name)
    found = [p for p in everything() if wanted in settings.names_of(p)]
    if not found:
        known = sorted({p.name for p in everything()} | {p.owner.distribution for p in everything()})
        near = difflib.get_close_matches(name, known, 3)
        if near or known:
            hint = f"Near: {', '.join(near)}." if near else f"There are {', '.join(known)}."
        else:
            hint = "None is installed: pip install its package; one of your own by pip install -e . in its folder."
        hint = " ".join([u.text + "." for u in undeclared.find(name)] or [hint])
        raise PluginError(f"no plugin is called '{name}', and no distribution that declares one. {hint}")
    return found


def of_namespace(namespace):
    """Plugins that declare a namespace, in the order in which they are loaded."""
    return [p for p in everything() if namespace in p.namespaces]


def of_device(name):
    """Plugins that declare a device."""
    return [p for p in everything() if name in p.devices]


def of_type(cls):
    """Plugins that declare a prefix of the module of a type, or of one that it inherits from."""
    modules = [base.__module__ for base in cls.__mro__[:-1] if isinstance(base.__module__, str)]
    below = lambda prefix: any(m == prefix or m.startswith(prefix + ".") for m in modules)
    return [p for p in everything() if any(below(prefix) for prefix in p.prefixes)]
