"""Functions of functions: vmap, grad, vjp, jvp, jacobians, under the names of `torch.func`."""

from .forward import jvp, linearize
from .jacobians import jacrev
from .modules import functional_call, stack_module_state
from .reverse import grad, grad_and_value, vjp
from .vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
