"""Optimizers and learning rate schedules."""

import importlib

from tinygrad_ext.core.call.boundary import boundary as _boundary

from ..errors import refuse_unknown
from . import lr_scheduler, optimizer
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]

# Loaded when first asked for: a program uses one of them, and the import of the package would pay for all.
_MODULES = {
    "ASGD": "asgd",
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adamax": "adamax",
    "LBFGS": "lbfgs",
    "NAdam": "nadam",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
}
_refuse = refuse_unknown(__name__)


@_boundary
def __getattr__(name):
    if name in _MODULES:
        value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    if name in ("adamw", "swa_utils", *_MODULES.values()):
        return importlib.import_module(f"{__name__}.{name}")
    return _refuse(name)


def __dir__():
    return sorted({*globals(), *_MODULES, "swa_utils"})
