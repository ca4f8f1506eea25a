"""What becomes of a module's parameters when it is converted or loaded: switches of the whole program.

By default a parameter takes over other memory. It may be replaced by a new one instead, or exchange all that it is with
a new one, which is what parameters of wrapper subclasses do anyway: they hold more than memory.
"""

from tinygrad_ext.overrides.dispatched import is_traceable_wrapper_subclass
from tinygrad_ext.utils.swapping import swap_tensors

from .parameter import Parameter, is_parameter

_wish = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value):
    """Let conversions of a module put new parameters in the place of the old ones, which keep what they are."""
    _wish["overwrite"] = value


def get_overwrite_module_params_on_conversion():
    """Whether conversions of a module make new parameters; False at the start."""
    return _wish["overwrite"]


def set_swap_module_params_on_conversion(value):
    """Let conversions of a module, and `load_state_dict`, swap parameters with new ones, see `utils.swap_tensors`."""
    _wish["swap"] = value


def get_swap_module_params_on_conversion():
    """Whether conversions of a module swap; False at the start."""
    return _wish["swap"]


def swaps(data):
    """Whether a parameter that becomes data is to be swapped with it."""
    return _wish["swap"] or is_traceable_wrapper_subclass(data)


def swap_parameter(module, name, parameter, data, fn):
    """Let a parameter be `Parameter(data)`, and its gradient what fn makes of it; both stay the same objects."""
    grad, parameter.grad = parameter.grad, None
    where = f"_apply(): Couldn't swap {type(module).__name__}.{name}"
    try:
        swap_tensors(parameter, Parameter(data, parameter.requires_grad))
    except Exception as error:
        parameter.grad = grad
        raise RuntimeError(where) from error
    if grad is not None:
        converted = fn(grad).requires_grad_(grad.requires_grad)
        try:
            swap_tensors(grad, converted)
        except Exception as error:
            raise RuntimeError(f"{where}.grad") from error
        parameter.grad = grad


def swap_loaded(current, given, assign):
    """Let a parameter or buffer be what its `module_load` makes of a loaded tensor."""
    made = current.module_load(given, assign=assign)
    if made is given or made is current:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if is_parameter(current):
        made = (
            made.requires_grad_(current.requires_grad) if is_parameter(made) else Parameter(made, current.requires_grad)
        )
    swap_tensors(current, made)
