"""Words for a name that is not there: who declares it and why that is not active, or what comes near."""

import difflib

from tinygrad_ext import registry

from . import loader, table, undeclared
from .model import ACTIVE, DISABLED, LOADING, phrase


def why_no_namespace(name, what="op"):
    """Text for `ops.<name>`, or for `nn.plugins.<name>` when what is "module"."""
    of = "tinygrad_ext.ops" if what == "op" else "tinygrad_ext.nn.plugins"
    declaring = table.of_namespace(name)
    if declaring:
        return f"{of} has no namespace '{name}' at present: {_states(declaring, what)}"
    present = registry.namespaces if what == "op" else [key.partition("::")[0] for key in registry.modules]
    known = sorted({*present, *(n for p in table.everything() for n in p.namespaces)})
    near = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean '{near[0]}'{_by(near[0])}? " if near else ""
    meant = undeclared.find(name)
    way_out = meant[0].text if meant else "If a package provides it, pip install that package"
    return (
        f"{of} has no namespace '{name}'. {hint}Known are {', '.join(known) or 'none'}; no installed distribution "
        f"declares '{name}'. {way_out}"
    )


def why_no_op(namespace, name):
    """Text for `ops.<namespace>.<name>`."""
    return _why_not_in("op", f"tinygrad_ext.ops.{namespace}", namespace, name, registry.names(namespace))


def why_no_module(namespace, name):
    """Text for `nn.plugins.<namespace>.<Name>`."""
    known = [key.partition("::")[2] for key in registry.modules if key.startswith(namespace + "::")]
    return _why_not_in("module", f"tinygrad_ext.nn.plugins.{namespace}", namespace, name, known)


def _why_not_in(what, of, namespace, name, known):
    near = difflib.get_close_matches(name, sorted(known), 3)
    hint = f" Near: {', '.join(near)}." if near else f" It has {', '.join(sorted(known)[:20]) or 'none'}."
    declaring = [p for p in table.of_namespace(namespace) if p.state != ACTIVE or not near]
    more = f" {_states(declaring, what)}" if declaring else ""
    return f"{of} has no {what} '{name}'.{hint}{more}"


def unknown_attribute(name):
    """A sentence for `tinygrad_ext.<name>`, where a plugin has an op or a namespace of that name; else ""."""
    if any(name in p.namespaces for p in table.everything()):
        return f" A plugin provides the namespace tinygrad_ext.ops.{name}."
    places = [
        f"tinygrad_ext.{path}" for path in registry.functions if path.startswith("ops.") and path.endswith("." + name)
    ]
    return f" There is {' and '.join(sorted(places))}." if places else ""


def why_not_handled(types):
    """Sentences for types that a plugin declares to handle, and does not; else ""."""
    declaring = dict.fromkeys(p for t in types if t.__module__ != "builtins" for p in table.of_type(t))
    return "".join(f" {_state(p, 'override')}." for p in declaring)


def why_no_device(name):
    """Sentences for a device that a plugin declares, and that is not there; else ""."""
    return "".join(f". {_state(p, 'device')}" for p in table.of_device(name))


def _by(namespace):
    return "".join(f" (of {p.owner})" for p in table.of_namespace(namespace)[:1])


def _states(plugins, what):
    return "; ".join(_state(p, what) for p in plugins)


def _state(plugin, what):
    title = plugin.title
    if loader.circle(plugin):
        return f"{title} is being loaded by this very code, and has not registered it yet: a circle of imports"
    if plugin.state == LOADING:
        return f"{title} is being loaded"
    if plugin.state == ACTIVE:
        return f"{title} is loaded, and registers no such {what}"
    if plugin.failure is not None:
        return (
            f"{title} is installed and {plugin.state}: {plugin.failure}. See tinygrad_ext.plugins.failed(); after a "
            f"repair plugins.reload('{plugin.name}')"
        )
    state, reason = table.why_not(plugin) or (plugin.state, "")
    way_out = f". To use it: plugins.enable('{plugin.name}')" if state == DISABLED else ""
    return f"{title} is installed and {phrase(state)}: {reason}{way_out}"
