"""Hooks that see every parameter, buffer and child as it is registered."""

from collections import OrderedDict

from tinygrad_ext.core.call.boundary import boundary

from .hooks import _add

_hooks = {"buffer": OrderedDict(), "module": OrderedDict(), "parameter": OrderedDict()}


@boundary
def register_module_buffer_registration_hook(hook):
    """Call ``hook(module, name, buffer)`` when a buffer is registered; a tensor returned replaces it."""
    return _add(_hooks["buffer"], hook)


@boundary
def register_module_module_registration_hook(hook):
    """Call ``hook(module, name, child)`` when a child is registered; a module returned replaces it."""
    return _add(_hooks["module"], hook)


@boundary
def register_module_parameter_registration_hook(hook):
    """Call ``hook(module, name, parameter)`` when a parameter is registered; one returned replaces it."""
    return _add(_hooks["parameter"], hook)


def call_registration_hooks(kind, module, name, part):
    """Return what to register in place of ``part`` after all hooks of ``kind``."""
    for hook in _hooks[kind].values():
        replaced = hook(module, name, part)
        if replaced is not None:
            part = replaced
    return part
