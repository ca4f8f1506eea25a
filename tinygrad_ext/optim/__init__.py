"""Optimizers and learning rate schedules."""

from ..errors import refuse_unknown
from . import lr_scheduler, optimizer
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]

__getattr__ = refuse_unknown(__name__)
