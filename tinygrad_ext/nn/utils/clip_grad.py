"""Limiting the size of gradients."""

import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary


def _with_grad(parameters):
    """Return a list of the parameters that have a gradient, given one or an iterable."""
    if isinstance(parameters, tg.Tensor):
        parameters = [parameters]
    return [parameter for parameter in parameters if parameter.grad is not None]


@boundary
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Return the norm of all tensors taken together as one vector.

    Args:
        tensors: one tensor or an iterable.
        norm_type: order of the norm; ``float("inf")`` for the largest absolute value.
        error_if_nonfinite: raise RuntimeError if it is NaN or infinite.
        foreach: accepted for PyTorch's sake; there is one implementation.
    """
    tensors = [tensors] if isinstance(tensors, tg.Tensor) else list(tensors)
    if not tensors:
        return tg.tensor(0.0)
    norm_type = float(norm_type)
    norms = [tg.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
    total = tg.linalg.vector_norm(tg.stack(norms), norm_type)
    if error_if_nonfinite and not bool(tg.isfinite(total)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot "
            "be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@boundary
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients by ``max_norm / total_norm`` where that is less than one."""
    with tg.no_grad():
        # The small number avoids a division by zero; it is PyTorch's, so that results agree.
        scale = tg.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for parameter in _with_grad(parameters):
            parameter.grad.mul_(scale)


@boundary
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients in place so that their common norm is at most ``max_norm``.

    Returns:
        The norm before, a 0-dim tensor.
    """
    with tg.no_grad():
        parameters = _with_grad(parameters)
        total = get_total_norm([p.grad for p in parameters], norm_type, error_if_nonfinite, foreach)
        clip_grads_with_norm_(parameters, max_norm, total, foreach)
        return total


@boundary
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Cut every element of the gradients to the range ±``clip_value``, in place."""
    limit = float(clip_value)
    with tg.no_grad():
        for parameter in _with_grad(parameters):
            parameter.grad.clamp_(min=-limit, max=limit)


@boundary
def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The older name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
