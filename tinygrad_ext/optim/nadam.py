"""NAdam: Adam with Nesterov's look ahead."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_betas, check_lr, check_not_negative
from .per_parameter import PerParameter, as_pairs, moments, number, scalar_dtype


@boundary
class NAdam(PerParameter):
    """Adam with Nesterov momentum (Dozat, 2016).

    With ``mu_t = beta1 * (1 - 0.5 * 0.96^(t * momentum_decay))`` and M_t the product of mu_1 to mu_t, the m of Adam is
    replaced by ``mu_(t+1) * m / (1 - M_(t+1)) + (1 - mu_t) * g / (1 - M_t)``.

    Args:
        params: see `Optimizer`.
        lr: step size.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty, or with ``decoupled_weight_decay`` the share taken off p directly.
        momentum_decay: how the momentum rises with the steps.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, capturable: accepted; there is one implementation.

    Raises:
        ValueError: an option out of range.
    """

    _penalty = False

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
        decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        state = moments(param)
        # between the count and the averages, as PyTorch lists them
        return {"step": state.pop("step"), "mu_product": tg.ones((), dtype=scalar_dtype()), **state}

    def _update(self, param, grad, state, group):
        lr, (beta1, beta2) = number(group["lr"]), map(number, group["betas"])
        grad = decayed(param, grad, group, lr)
        param, grad, average, squares = as_pairs(param, grad, state["exp_avg"], state["exp_avg_sq"])
        count = state["step"].item()
        mu, mu_next = (
            beta1 * (1 - 0.5 * 0.96 ** (at * group["momentum_decay"])) for at in (count, count + 1)
        )  # fmt: skip
        product = state["mu_product"].mul_(mu)
        average.lerp_(grad, 1 - beta1)
        squares.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        below = (squares / (1 - beta2**count)).sqrt() + group["eps"]
        if group["differentiable"]:  # by the product of all momenta, too
            param.sub_(grad / below * (lr * (1 - mu) / (1 - product)))
            param.sub_(average / below * (lr * mu_next / (1 - product * mu_next)))
            return
        product = product.item()
        param.addcdiv_(grad, below, value=-lr * (1 - mu) / (1 - product))
        param.addcdiv_(average, below, value=-lr * mu_next / (1 - product * mu_next))


def decayed(param, grad, group, lr):
    """Apply the weight decay of a group, to the parameter itself or to the gradient, which is returned."""
    decay = group["weight_decay"]
    if not decay:
        return grad
    if group["decoupled_weight_decay"]:
        param.mul_(1 - lr * decay)
        return grad
    return grad.add(param, alpha=decay)
