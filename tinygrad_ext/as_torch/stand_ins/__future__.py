"""torch.__future__: switches of how modules are converted; all but the default are refused."""


def get_overwrite_module_params_on_conversion():
    """False: parameters keep their identity."""
    return False


def get_swap_module_params_on_conversion():
    """False."""
    return False


def set_overwrite_module_params_on_conversion(value):
    """Accept False alone."""
    if value:
        raise NotImplementedError("torch.__future__: parameters keep their identity when a module is converted")


set_swap_module_params_on_conversion = set_overwrite_module_params_on_conversion
