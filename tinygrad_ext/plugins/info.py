"""What a plugin has brought, read off the tables."""

from tinygrad_ext import registry
from tinygrad_ext.registry import (
    device_registrar,
    dtype_registrar,
    module_registrar,
    override_registrar,
    pass_registrar,
)

from . import table
from .model import FOUND, PluginInfo


def info_of(plugin):
    """The PluginInfo of a Plugin."""
    state, reason = plugin.state, str(plugin.failure or "")
    if state == FOUND:
        state, reason = table.why_not(plugin) or (state, "")
    owner = plugin.owner
    return PluginInfo(
        plugin.name,
        owner.distribution,
        owner.version or "",
        state,
        reason,
        tuple(plugin.entry_points),
        tuple(plugin.namespaces),
        tuple(plugin.prefixes),
        plugin.location,
        plugin.scope.keys(registry.ops),
        plugin.scope.keys(registry.modules),
        plugin.scope.keys(override_registrar.handled),
        tuple(dict.fromkeys((*plugin.devices, *plugin.scope.keys(device_registrar.brought)))),
        plugin.scope.keys(dtype_registrar.brought),
        plugin.scope.keys(pass_registrar.passes),
        plugin.seconds * 1e3,
    )


def owner_of(thing):
    """The Owner (distribution, version) of an op, a function of ops, a method, an nn module or its class; else None."""
    record = getattr(thing, "record", None)
    owner = getattr(record, "owner", None) or getattr(thing, "owner", None)
    if owner is not None:
        return owner
    found = module_registrar.owner_of(thing if isinstance(thing, type) else type(thing))
    return found[1] if found else None
