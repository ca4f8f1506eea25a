"""RAdam: Adam that waits with its denominator until the variance of it is known."""

from tinygrad_ext.core.call.boundary import boundary

from .checks import check_betas, check_lr, check_not_negative
from .nadam import decayed
from .per_parameter import PerParameter, as_pairs, moments, number


@boundary
class RAdam(PerParameter):
    """Rectified Adam (Liu et al., 2019).

    With ``n = 2 / (1 - beta2) - 1`` and ``r = n - 2 * t * beta2^t / (1 - beta2^t)``, the step is that of momentum while
    ``r <= 5``, and then Adam's times ``sqrt((r - 4) * (r - 2) * n / ((n - 4) * (n - 2) * r))``.

    Args:
        params: see `Optimizer`.
        lr: step size.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty, or with ``decoupled_weight_decay`` the share taken off p directly.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, capturable: accepted; there is one implementation.

    Raises:
        ValueError: an option out of range.
    """

    _penalty = False

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,
        foreach=None, maximize=False, capturable=False, differentiable=False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        return moments(param)

    def _update(self, param, grad, state, group):
        lr, (beta1, beta2) = number(group["lr"]), map(number, group["betas"])
        grad = decayed(param, grad, group, lr)
        param, grad, average, squares = as_pairs(param, grad, state["exp_avg"], state["exp_avg_sq"])
        average.lerp_(grad, 1 - beta1)
        squares.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        count = state["step"].item()
        step_size = lr / (1 - beta1**count)
        left = 1 - beta2**count
        most = 2 / (1 - beta2) - 1
        known = most - 2 * count * beta2**count / left
        if known <= 5:
            param.add_(average, alpha=-step_size)
            return
        trust = ((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known)) ** 0.5
        param.addcdiv_(average, squares.sqrt() + group["eps"], value=-step_size * trust * left**0.5)
