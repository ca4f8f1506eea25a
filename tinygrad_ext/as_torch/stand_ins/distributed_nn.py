"""torch.distributed.nn: there is no other process to exchange tensors with."""

from . import absent
from . import distributed_nn_functional as functional

__all__ = ["functional"]
globals().update(absent.functions("distributed.nn", functional.NAMES, functional.WHY))
