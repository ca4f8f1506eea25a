"""Neural network layers: Module, the layers built on it, initialisation, utilities."""

from tinygrad_ext.registry import scope as _scope
from tinygrad_ext.registry.module_registrar import ModuleRegistrar as _ModuleRegistrar
from tinygrad_ext.registry.module_registrar import set_base as _set_base

from ..errors import refuse_unknown
from . import attention, functional, init, module, modules, parameter, plugins, utils
from .module import Module
from .modules import *
from .modules import LinearCrossEntropyOptions
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .plugins import create

_set_base(Module)
_register = _ModuleRegistrar(_scope.builtin)
for _name in modules.__all__:
    _register("nn::" + _name, getattr(modules, _name))

__all__ = [
    "Buffer",
    "LinearCrossEntropyOptions",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "create",
    "functional",
    "init",
    "plugins",
    "utils",
    *modules.__all__,
]

__getattr__ = refuse_unknown(__name__)
