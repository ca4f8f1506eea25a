"""torch.distributed.nn: collectives with gradients; models in parts are refused."""

from . import distributed_nn_functional as functional

__all__ = ["functional"]
globals().update({name: getattr(functional, name) for name in functional.NAMES.split()})
