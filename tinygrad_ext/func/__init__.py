"""Functions of functions: vmap, grad, vjp, jvp, jacobians, under the names of `torch.func`."""

from .jacobians import jacrev
from .modules import functional_call, stack_module_state
from .reverse import grad, grad_and_value, vjp
from .vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "jacrev",
    "stack_module_state",
    "vjp",
    "vmap",
]
