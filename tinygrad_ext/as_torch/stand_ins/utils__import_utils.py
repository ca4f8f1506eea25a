"""torch.utils._import_utils: what can be imported, asked without importing it."""

import importlib
import importlib.util

__all__ = ["dill_available", "import_dill"]


def _check_module_exists(name):
    """Whether there is a module of this name."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def dill_available():
    """Whether dill can be imported."""
    return _check_module_exists("dill")


def import_dill():
    """dill, told to leave Python's pickle as it is; None where there is none."""
    if not dill_available():
        return None
    dill = importlib.import_module("dill")
    dill.extend(use_dill=False)
    return dill
