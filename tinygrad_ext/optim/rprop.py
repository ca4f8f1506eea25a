"""Rprop: steps that look at the sign of the gradient only."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_lr
from .per_parameter import PerParameter, as_pairs, new_count


@boundary
class Rprop(PerParameter):
    """Resilient backpropagation (Riedmiller and Braun, 1993), for gradients of the whole data.

    Each element has its own step: times ``etas[1]`` while the gradient keeps its sign, times ``etas[0]`` when it turns,
    and then that element stays where it is for once.

    Args:
        params: see `Optimizer`.
        lr: the first step of each element.
        etas: factors, the first in (0, 1), the second above 1.
        step_sizes: least and largest step.
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, capturable: accepted; there is one implementation.

    Raises:
        ValueError: an option out of range.
    """

    _penalty = False

    def __init__(
        self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *,
        capturable=False, foreach=None, maximize=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}; expected 0 < etas[0] < 1 < etas[1]")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        lr = float(group["lr"])
        start = complex(lr, lr) if param.is_complex() else lr
        return {
            "step": new_count(),
            "prev": tg.zeros_like(param),
            "step_size": tg.full_like(param, start, requires_grad=False),
        }

    def _update(self, param, grad, state, group):
        (less, more), (least, most) = group["etas"], group["step_sizes"]
        param, grad, before, steps = as_pairs(param, grad, state["prev"], state["step_size"])
        agree = grad * before
        factor = tg.ones_like(steps).masked_fill(agree > 0, more).masked_fill(agree < 0, less)
        steps.copy_((steps * factor).clamp(least, most))
        grad = grad.masked_fill(agree < 0, 0)
        param.addcmul_(grad.sign(), steps, value=-1)
        before.copy_(grad)
