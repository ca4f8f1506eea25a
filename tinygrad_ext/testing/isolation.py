"""Tests that leave no trace: plugins set aside for a while, and things registered for a while.

The fixtures `isolated_plugins` and `register_temporarily` of pytest_tinygrad_ext.py are these two.
"""

import contextlib
import os
import sys

from tinygrad_ext import plugins, registry
from tinygrad_ext.ops.record import Owner, Record
from tinygrad_ext.plugins import loader, settings, table
from tinygrad_ext.plugins.model import ACTIVE
from tinygrad_ext.plugins.scan import scan
from tinygrad_ext.registry import foreign, scope
from tinygrad_ext.registry.module_registrar import ModuleRegistrar
from tinygrad_ext.registry.op_registrar import OpRegistrar
from tinygrad_ext.registry.override_registrar import OverrideRegistrar

VARIABLES = ("TINYGRAD_EXT_PLUGINS", "TINYGRAD_EXT_DISABLE_PLUGINS", "TINYGRAD_EXT_STRICT_PLUGINS")


class Temporary:
    """Registers ops, modules and overrides, as hooks do, under any namespace that is free."""

    def __init__(self):
        self.scope = scope.Scope(Owner("this test"))

    def op(self, schema, **fields):
        """Add an op; returns the callable `ops.<namespace>.<name>`. The fields are those of a record."""
        frame = sys._getframe(1)
        register = OpRegistrar(self.scope)
        op = register.add(Record(schema, frame.f_code.co_filename, frame.f_lineno, None, fields))
        register.finish()
        return registry.functions[registry.prefixes(op.record)[0] + op.schema.name]

    def module(self, name, cls, *, samples=None):
        """Add a module class under "namespace::Name"; returns the class."""
        return ModuleRegistrar(self.scope)(name, cls, samples=samples)

    def override(self, target, handler):
        """Let handler(func, types, args, kwargs) see calls with a type, or with types of a module's prefix."""
        OverrideRegistrar(self.scope)(target, handler)


@contextlib.contextmanager
def temporary():
    """`with temporary() as register:` what is registered inside is undone afterwards."""
    register = Temporary()
    try:
        yield register
    finally:
        register.scope.undo()


class Isolated:
    """What a test may do with plugins while all others are out of sight."""

    def __init__(self, installed):
        self._installed = installed

    def register(self, namespace, target, *, distribution=None, version=None):
        """`plugins.register`: load a module or object with hooks under a namespace."""
        return plugins.register(namespace, target, distribution=distribution, version=version)

    def use(self, name):
        """Let an installed plugin be seen, by its name, namespace or distribution. PluginError when there is none."""
        if self._installed is None:
            self._installed = scan()[0]
        found = [p for p in self._installed if settings.plain(name) in settings.names_of(p)]
        if not found:
            known = ", ".join(sorted({p.name for p in self._installed})) or "none"
            raise plugins.PluginError(f"no installed plugin is called '{name}'; there are {known}")
        table.exchange(table.registered(), [*table.everything(), *(p for p in found if p not in table.everything())])
        foreign.refresh()


@contextlib.contextmanager
def isolated():
    """`with isolated() as plugins:` no plugin is there but those asked for; afterwards all is as before.

    Plugins that were active are undone and brought back at the end, from the same module objects. Environment and
    user's configuration say nothing inside; what the program registers directly is undone too.
    """
    known = table.known()
    active = [p for p in known if p.state == ACTIVE]
    modules = {name: m for name, m in sys.modules.items() if any(p.owns(name) for p in active)}
    chosen, only, mark = dict(settings.chosen), list(settings.only), scope.application.mark()
    environ = {key: os.environ.pop(key) for key in VARIABLES if key in os.environ}
    folder, settings.config_folder = settings.config_folder, _nowhere
    for plugin in active:
        loader.unload(plugin)
    before = table.exchange([], [])
    settings.chosen.clear()
    settings.only.clear()
    foreign.refresh()
    try:
        yield Isolated(before[1])
    finally:
        for plugin in table.known():
            loader.unload(plugin)
        scope.application.undo(mark)
        table.exchange(*before)
        settings.config_folder = folder
        _put_back(settings.chosen, chosen)
        settings.only[:] = only
        for key in VARIABLES:
            os.environ.pop(key, None)
        os.environ.update(environ)
        sys.modules.update(modules)
        for plugin in active:
            loader.load(plugin)
        foreign.refresh()


def _nowhere():
    """A folder without a configuration file."""
    from pathlib import Path

    return Path(os.devnull) / "tinygrad_ext"


def _put_back(mapping, before):
    mapping.clear()
    mapping.update(before)
