"""Adadelta: steps as large as the last ones were, so that no step size has to be chosen."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_lr, check_not_negative
from .per_parameter import PerParameter, as_pairs, new_count, number


@boundary
class Adadelta(PerParameter):
    """Adadelta (Zeiler, 2012).

    With the gradient g: ``v = rho * v + (1 - rho) * g²``, ``d = sqrt(u + eps) / sqrt(v + eps) * g``,
    ``u = rho * u + (1 - rho) * d²`` and ``p = p - lr * d``.

    Args:
        params: see `Optimizer`.
        lr: a factor of the step.
        rho: decay of the two averages.
        eps: added below the roots.
        weight_decay: strength of the L2 penalty.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, capturable: accepted; there is one implementation.

    Raises:
        ValueError: an option out of range.
    """

    def __init__(
        self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *,
        capturable=False, maximize=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}; it must be in [0, 1]")
        check_not_negative("epsilon value", eps)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        return {"step": new_count(), "square_avg": tg.zeros_like(param), "acc_delta": tg.zeros_like(param)}

    def _update(self, param, grad, state, group):
        rho, eps = group["rho"], group["eps"]
        if param.is_conj():  # its memory has parts to be written to, as the parameter itself has none
            param, grad = param.conj(), grad.conj().resolve_conj()
        param, grad, squares, steps = as_pairs(param, grad, state["square_avg"], state["acc_delta"])
        squares.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = (steps + eps).sqrt() / (squares + eps).sqrt() * grad
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-number(group["lr"]))
