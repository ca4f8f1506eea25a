"""The names under which users know the compiled types."""

from tinygrad_ext.core.call import callables
from tinygrad_ext.core.data import dtype, random, tensor
from tinygrad_ext.core.data.tensor import Tensor


def name_types(package):
    """Name the package that users import the compiled types from: under `as_torch` that is torch."""
    for t in (Tensor, dtype.dtype, dtype.device, random.Generator):
        callables.name_type(t, f"{package}.{t.__name__}")
    dtype.Size.__module__ = package  # a Python class
    callables.name_type(tensor.Parameter, f"{package}.nn.parameter.Parameter")
