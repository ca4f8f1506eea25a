"""Averaged stochastic gradient descent."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_lr, check_not_negative
from .per_parameter import PerParameter, as_pairs, new_count, number, scalar_dtype


@boundary
class ASGD(PerParameter):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    With the gradient g and the step size ``eta = lr / (1 + lambd * lr * t)^alpha``:
    ``p = p * (1 - lambd * eta) - eta * g``. From step t0 on, ``state[p]["ax"]`` is the mean of p over the steps.

    Args:
        params: see `Optimizer`.
        lr: step size.
        lambd: decay of p.
        alpha: power with which eta falls.
        t0: step at which the averaging starts.
        weight_decay: strength of the L2 penalty.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, capturable: accepted; there is one implementation.

    Raises:
        ValueError: a negative option.
    """

    def __init__(
        self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None,
        maximize=False, differentiable=False, capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        return {
            "step": new_count(),
            "eta": tg.tensor(float(group["lr"]), dtype=scalar_dtype()),
            "mu": tg.ones((), dtype=scalar_dtype()),
            "ax": tg.zeros_like(param),
        }

    def _update(self, param, grad, state, group):
        lr, lambd = number(group["lr"]), group["lambd"]
        param, grad, mean = as_pairs(param, grad, state["ax"])
        eta, share, count = state["eta"].item(), state["mu"].item(), state["step"].item()
        param.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        if share == 1:
            mean.copy_(param)
        else:
            mean.add_((param - mean) * share)
        state["eta"].fill_(lr / (1 + lambd * lr * count) ** group["alpha"])
        state["mu"].fill_(1 / max(1, count - group["t0"]))

    def __setstate__(self, state):
        super().__setstate__(state)
        for entries in self.state.values():
            for name in ("eta", "mu"):
                if name in entries and not isinstance(entries[name], tg.Tensor):
                    entries[name] = tg.tensor(float(entries[name]), dtype=scalar_dtype())
