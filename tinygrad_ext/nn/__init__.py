"""Neural network layers: Module, the layers built on it, initialisation, utilities."""

from ..errors import refuse_unknown
from . import functional, init, module, modules, parameter, utils
from .module import Module
from .modules import *
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Module", "Parameter", "functional", "init", "utils", *modules.__all__]

__getattr__ = refuse_unknown(__name__)
