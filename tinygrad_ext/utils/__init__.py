"""Helpers that do not belong to one layer: hooks, data loading."""

import importlib

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.errors import no_attribute

_LAZY = (
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "hooks",
    "tensorboard",
    "weak",
    "_pytree",
)


@_boundary
def __getattr__(name):
    if name == "include_paths":
        return importlib.import_module(f"{__name__}.cpp_extension").include_paths
    if name == "swap_tensors":
        return importlib.import_module(f"{__name__}.swapping").swap_tensors
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise no_attribute(__name__, name, _LAZY)
