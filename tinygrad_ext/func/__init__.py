"""Functions of functions: vmap, grad, vjp, jvp, jacobians, under the names of `torch.func`."""

from .axes import rearrange
from .forward import jvp, linearize
from .jacobians import hessian, jacfwd, jacrev
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .plain import debug_unwrap, functionalize
from .reverse import grad, grad_and_value, vjp
from .vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
