"""Runs the hooks of one plugin, by pluggy, and refuses what would reach beyond it.

A plain pluggy call is a broadcast in which a wrapper of one plugin sees the others'. So each load has a manager of its
own with one plugin in it.
"""

import difflib
import inspect

import pluggy

from tinygrad_ext import hookspecs
from tinygrad_ext.registry.device_registrar import DeviceRegistrar
from tinygrad_ext.registry.module_registrar import ModuleRegistrar
from tinygrad_ext.registry.op_registrar import OpRegistrar
from tinygrad_ext.registry.override_registrar import OverrideRegistrar
from tinygrad_ext.registry.pass_registrar import PassRegistrar
from tinygrad_ext.registry.profiler_registrar import ProfilerRegistrar

from .model import Incompatible, PluginError
from .versions import allows

REGISTRARS = {
    "tgx_register_devices": DeviceRegistrar,
    "tgx_register_ops": OpRegistrar,
    "tgx_register_modules": ModuleRegistrar,
    "tgx_register_overrides": OverrideRegistrar,
    "tgx_register_passes": PassRegistrar,
    "tgx_register_profilers": ProfilerRegistrar,
}


def run(plugin, target):
    """Call the hooks of a plugin, each with a registrar of the plugin's scope. Raises what the plugin raises."""
    _check_api(plugin, target)
    manager = pluggy.PluginManager("tinygrad_ext")
    manager.add_hookspecs(hookspecs)
    marked = _marked(manager, target)
    for name in marked:
        _check_hook(manager, name, marked[name], target)
    manager.register(target, plugin.name)
    for hook, registrar in REGISTRARS.items():
        if hook in marked.values():
            plugin.stage = hook
            register = registrar(plugin.scope)
            getattr(manager.hook, hook)(register=register)
            register.close()


def _check_api(plugin, target):
    wanted = getattr(target, "requires_api", None)
    if wanted is None:
        return
    version = ".".join(map(str, hookspecs.API_VERSION))
    if not allows(wanted, hookspecs.API_VERSION):
        raise Incompatible(
            f"it requires version {wanted} of the plugin API (requires_api), and this tinygrad_ext has {version}. "
            f"Install another version of {plugin.owner.distribution} or of tinygrad_ext"
        )


def _marked(manager, target):
    """Attribute -> hook of the functions marked with hookimpl; refuses those that should be."""
    if isinstance(target, type):
        raise PluginError(f"a plugin is a module or an object, and {target!r} is a class: name an instance of it")
    marked = {}
    for name in dir(target):
        found = inspect.getattr_static(target, name, None)
        opts = manager.parse_hookimpl_opts(target, name)
        if opts is not None:
            marked[name] = opts.get("specname") or name
        elif name.startswith("tgx_") and callable(getattr(found, "__func__", found)):
            raise PluginError(
                f"{name} is not marked as a hook: put @tinygrad_ext.hookimpl on the line above it{_near(name)}"
            )
    return marked


def _near(name):
    if name in REGISTRARS:
        return ""
    near = difflib.get_close_matches(name, REGISTRARS, 1, 0.5)
    return f"; did you mean {near[0]}?" if near else f"; hooks are {', '.join(REGISTRARS)}"


def _check_hook(manager, name, hook, target):
    opts, function = manager.parse_hookimpl_opts(target, name), getattr(target, name)
    if hook not in REGISTRARS:
        if opts.get("optionalhook"):
            return
        raise PluginError(f"there is no hook {hook}{_near(hook)}")
    if opts.get("wrapper") or opts.get("hookwrapper"):
        raise PluginError(
            f"{hook} is a hook wrapper, which could change what other plugins register: make it a plain hookimpl"
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise PluginError(f"{hook} is a generator or coroutine, whose body would never run: make it a plain function")
    known = list(inspect.signature(getattr(hookspecs, hook)).parameters)
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty and p.name not in known:
            raise PluginError(f"{hook} has no argument '{p.name}': it is called as {hook}({', '.join(known)})")
