"""RMSprop: gradients over the root of their mean square."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_lr, check_not_negative
from .per_parameter import PerParameter, as_pairs, new_count, number


@boundary
class RMSprop(PerParameter):
    """RMSprop (Hinton, 2012), also with momentum and centered (Graves, 2013).

    With the gradient g: ``v = alpha * v + (1 - alpha) * g²`` and ``p = p - lr * g / (sqrt(v) + eps)``.

    Args:
        params: see `Optimizer`.
        lr: step size.
        alpha: decay of the averages.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty.
        momentum: p moves by lr times ``m = momentum * m + g / (sqrt(v) + eps)``.
        centered: take the square of the mean gradient off v, which leaves the variance.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, capturable: accepted; there is one implementation.

    Raises:
        ValueError: a negative option.
    """

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False,
        foreach=None, maximize=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        state = {"step": new_count(), "square_avg": tg.zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = tg.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = tg.zeros_like(param)
        return state

    def _update(self, param, grad, state, group):
        lr, alpha, momentum = number(group["lr"]), group["alpha"], group["momentum"]
        param, grad, squares = as_pairs(param, grad, state["square_avg"])
        squares.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            (mean,) = as_pairs(state["grad_avg"])
            mean.lerp_(grad, 1 - alpha)
            below = squares.addcmul(mean, mean, value=-1).sqrt() + group["eps"]
        else:
            below = squares.sqrt() + group["eps"]
        if momentum > 0:
            (buffer,) = as_pairs(state["momentum_buffer"])
            buffer.mul_(momentum).addcdiv_(grad, below)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, below, value=-lr)
