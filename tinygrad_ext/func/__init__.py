"""Functions of functions: vmap, grad, vjp, jvp, jacobians, under the names of `torch.func`."""

from .reverse import grad, grad_and_value, vjp
from .vmap import vmap

__all__ = ["grad", "grad_and_value", "vjp", "vmap"]
