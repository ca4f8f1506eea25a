"""All parameters as one vector, and back."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary


@boundary
def parameters_to_vector(parameters):
    """Return one vector of all parameters, flattened and joined in order."""
    return tg.cat([parameter.view(-1) for parameter in parameters])


@boundary
def vector_to_parameters(vec, parameters):
    """Let each parameter be its slice of ``vec``, in the order of `parameters_to_vector`.

    Raises:
        TypeError: ``vec`` is not a tensor.
    """
    if not isinstance(vec, tg.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end
