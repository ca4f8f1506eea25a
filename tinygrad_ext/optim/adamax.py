"""Adamax: Adam with the largest gradient in the place of the mean square."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_betas, check_lr, check_not_negative
from .per_parameter import PerParameter, as_pairs, new_count, number


@boundary
class Adamax(PerParameter):
    """Adamax (Kingma and Ba, 2014, section 7).

    With the gradient g at step t: ``m = beta1 * m + (1 - beta1) * g``, ``u = max(beta2 * u, |g| + eps)`` and
    ``p = p - lr / (1 - beta1^t) * m / u``.

    Args:
        params: see `Optimizer`.
        lr: step size.
        betas: decay of m and u.
        eps: keeps u from zero.
        weight_decay: strength of the L2 penalty.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, capturable: accepted; there is one implementation.

    Raises:
        ValueError: an option out of range.
    """

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *,
        maximize=False, differentiable=False, capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        return {"step": new_count(), "exp_avg": tg.zeros_like(param), "exp_inf": tg.zeros_like(param)}

    def _update(self, param, grad, state, group):
        beta1, beta2 = map(number, group["betas"])
        param, grad, average, largest = as_pairs(param, grad, state["exp_avg"], state["exp_inf"])
        average.lerp_(grad, 1 - beta1)
        size = grad.abs().add_(group["eps"])
        if group["differentiable"]:
            largest.copy_(tg.maximum(largest * beta2, size))
        else:
            tg.maximum(largest.mul_(beta2), size, out=largest)
        step_size = number(group["lr"]) / (1 - beta1 ** state["step"].item())
        param.addcdiv_(average, largest, value=-step_size)
