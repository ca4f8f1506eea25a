"""torch.__future__: switches of how modules are converted and loaded, which nn/conversion.py has."""

from tinygrad_ext.nn.conversion import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
    set_overwrite_module_params_on_conversion,
    set_swap_module_params_on_conversion,
)

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]
