"""Clearing gradients, as modules and optimizers both do."""

from ..core.call.levels import atomic


@atomic("optim::zero_grad")
def clear_grads(parameters, set_to_none):
    """Drop each parameter's gradient, or zero it in place and cut it off its graph."""
    for parameter in parameters:
        grad = parameter.grad
        if grad is None:
            continue
        if set_to_none:
            parameter.grad = None
            continue
        if grad.grad_fn is not None:
            grad.detach_()
        else:
            grad.requires_grad_(False)
        grad.zero_()
