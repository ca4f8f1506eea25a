"""Plugins: what `pip install` adds. Which there are, what became of them, and switches.

    from tinygrad_ext import plugins

    plugins.list()              # PluginInfo of each, loaded or not
    plugins.failed()            # why some are left out
    plugins.disable("vision")   # undoes everything it added

A plugin is imported when something of its namespace is first used, not before. See docs/plugins.md.
"""

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.registry import foreign

from . import loader, settings, table
from .info import info_of, owner_of
from .model import ACTIVE, FAILED, INCOMPATIBLE, Failure, Plugin, PluginError, PluginInfo, PluginWarning, phrase
from .unknown import unknown_attribute, why_no_device, why_no_module, why_no_namespace, why_no_op, why_not_handled

__all__ = [
    "Failure",
    "PluginError",
    "PluginInfo",
    "PluginWarning",
    "disable",
    "enable",
    "failed",
    "info",
    "list",
    "load",
    "load_all",
    "only",
    "owner_of",
    "register",
    "reload",
    "rescan",
    "unregister",
]
# asked by the rest of the package
__all__ += ["declared", "load_for_device", "load_for_owner", "load_for_type", "load_namespace"]
__all__ += ["unknown_attribute", "why_not_handled", "why_no_module", "why_no_namespace", "why_no_op"]


@_boundary
def list():
    """All plugins as PluginInfo, sorted by name; those not used yet are listed without being imported."""
    return sorted((info_of(p) for p in table.everything()), key=lambda i: (i.name, i.distribution))


@_boundary
def info(name):
    """PluginInfo of one plugin, by its name or its distribution's. PluginError when there is none."""
    return info_of(_one(name))


@_boundary
def failed():
    """A Failure for each plugin that raised while it was loaded: cause, line in its code, traceback."""
    return [p.failure for p in table.everything() if p.failure is not None]


@_boundary
def load(name):
    """Load a plugin now. PluginError, caused by the plugin's own exception, when that fails."""
    for plugin in table.select(name):
        _load_or_raise(plugin)


def _load_or_raise(plugin):
    not_allowed = table.why_not(plugin)
    if plugin.failure is None and not_allowed:
        raise PluginError(f"{plugin.title} is {phrase(not_allowed[0])}: {not_allowed[1]}")
    if plugin.failure is not None:
        raise PluginError(f"{plugin.title} is {plugin.state}: {plugin.failure}")
    try:
        loader.load(plugin, raising=True)
    except (Exception, SystemExit) as error:
        if plugin.failure is None or settings.strict():
            raise
        raise PluginError(f"{plugin.title} was not loaded: {plugin.failure}") from error


@_boundary
def load_all():
    """Load every enabled plugin; a failing one warns and the rest goes on. Returns the list of PluginInfo."""
    for plugin in table.everything():
        loader.load(plugin)
    return list()


@_boundary
def load_namespace(namespace):
    """Load what declares a namespace; the first use of `ops.<namespace>` comes here."""
    for plugin in table.of_namespace(namespace):
        loader.load(plugin)


@_boundary
def load_for_type(cls):
    """Load what declares a prefix of the module of a type, or of one it inherits from."""
    for plugin in table.of_type(cls):
        loader.load(plugin)


@_boundary
def load_for_device(name):
    """Load what declares a device; the first `device(name)` comes here. Returns why it is not there, if it is not."""
    for plugin in table.of_device(name):
        loader.load(plugin)
    return why_no_device(name)


@_boundary
def load_for_owner(owner):
    """Load the plugins of a distribution, of whatever version; a file that names its dtype comes here."""
    for plugin in table.everything():
        if plugin.owner.distribution == owner.partition(" ")[0]:
            loader.load(plugin)


@_boundary
def declared():
    """Namespaces that plugins declare, loaded or not."""
    return {n for p in table.everything() for n in p.namespaces}


@_boundary
def disable(name):
    """Undo everything a plugin added, and do not load it again in this process, until `enable`."""
    for plugin in table.select(name):
        loader.unload(plugin)
    settings.say(name, False)


@_boundary
def enable(name):
    """Let a plugin be loaded at its next use, whatever environment and configuration say."""
    for plugin in table.select(name):
        if plugin.state in (FAILED, INCOMPATIBLE):
            plugin.reset()
    settings.say(name, True)
    foreign.refresh()


@_boundary
def reload(name):
    """Undo a plugin and load it anew from its source, as one does in a notebook after a change."""
    import importlib

    importlib.invalidate_caches()
    for plugin in table.select(name):
        loader.unload(plugin, everything=plugin.target is None)
    rescan()  # another version may have been installed meanwhile
    for plugin in table.select(name):
        _load_or_raise(plugin)


@_boundary
class only:
    """`with plugins.only("vision"):` no other plugin is active inside; afterwards all is as before.

    Plugins that were active are loaded again at their next use.
    """

    def __init__(self, *names):
        self.names = names

    def __enter__(self):
        for name in self.names:
            table.select(name)
        settings.only.append({settings.plain(name) for name in self.names})
        _unload_disabled()
        return self

    def __exit__(self, *exc):
        settings.only.pop()
        _unload_disabled()


def _unload_disabled():
    for plugin in table.everything():
        if plugin.state == ACTIVE and settings.why_disabled(plugin) is not None:
            loader.unload(plugin)
    foreign.refresh()


@_boundary
def register(namespace, target, *, distribution=None, version=None):
    """Register a plugin of the running program: no entry point, no installation; for applications and frozen builds.

    Args:
        namespace: its name, as an entry point would give it.
        target: module with hooks, object with hooks, or the dotted name of a module to import.
        distribution, version: the owner shown; by default the module's name.

    Raises PluginError when the name is taken or the plugin fails; nothing is left behind then.
    """
    module = target if isinstance(target, str) else getattr(target, "__name__", type(target).__module__)
    plugin = Plugin(
        namespace, module, distribution or module, version, target=None if isinstance(target, str) else target
    )
    plugin.declare("plugins.register", namespace)
    table.add(plugin)
    try:
        _load_or_raise(plugin)
    except BaseException:
        table.remove(plugin)
        raise
    return info_of(plugin)


@_boundary
def unregister(namespace):
    """Undo `register`."""
    plugin = next((p for p in table.registered() if p.name == namespace), None)
    if plugin is None:
        raise PluginError(f"plugins.unregister: the program has registered no plugin '{namespace}'")
    loader.unload(plugin)
    table.remove(plugin)


@_boundary
def rescan():
    """Look again for installed plugins, as after a pip install in a notebook. Loaded ones stay as they are."""
    table.rescan()
    foreign.refresh()


def _one(name):
    found = table.select(name)
    for closer in (lambda p: p.name == name, lambda p: p.problem is None):
        found = [p for p in found if closer(p)] or found
    if len(found) > 1:
        raise PluginError(f"'{name}' may mean " + " or ".join(f"{p.title} in {p.location}" for p in found))
    return found[0]
