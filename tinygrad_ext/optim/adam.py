"""Adam, and AdamW: the same with a weight decay of its own."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from ..core.call.levels import levels_on
from . import _fused
from .checks import check_betas, check_fused, check_lr, check_not_negative, check_tensors, plain_number, refuse_sparse
from .optimizer import Optimizer

COLUMNS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")


@boundary
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014).

    With the gradient g at step t: ``m = beta1 * m + (1 - beta1) * g``,
    ``v = beta2 * v + (1 - beta2) * g²``, and
    ``p = p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)``.

    Args:
        params: see `Optimizer`.
        lr: step size.
        betas: decay of the two averages.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty, which is added to g; or, with
            ``decoupled_weight_decay``, the share ``lr * weight_decay`` taken off p directly.
        amsgrad: divide by the largest v so far (Reddi et al., 2018).
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, fused, capturable: accepted; there is one implementation, which is fused.

    Raises:
        ValueError: an option out of range.
        RuntimeError: ``fused`` with ``foreach`` or ``differentiable``.
    """

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *,
        foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
        decoupled_weight_decay=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_tensors(lr, betas, foreach, capturable)
        check_fused(fused, foreach, differentiable)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def step(self, closure=None):
        """Update the parameters that have a gradient; returns what ``closure`` returned."""
        loss = None
        if closure is not None:
            with tg.enable_grad():
                loss = closure()
        for number, group in enumerate(self.param_groups):
            if group["differentiable"]:
                self._start_state(group)
                _fused.adam_in_ops(*self._update(number, group))
                continue
            if levels_on():  # what they see is one update, so its state has to be there
                self._start_state(group)
            if not _fused.adam(*self._update(number, group)):
                self._start_state(group)
                _fused.adam(*self._update(number, group))
        return loss

    def _update(self, number, group):
        """Return the arguments of `_fused.adam` for one group."""
        exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps = self._state_columns(number, COLUMNS)
        amsgrad = group["amsgrad"]
        beta1, beta2 = group["betas"]
        return (
            group["params"],
            exp_avgs,
            exp_avg_sqs,
            max_exp_avg_sqs if amsgrad else None,
            steps,
            plain_number(group["lr"]),
            plain_number(beta1),
            plain_number(beta2),
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            amsgrad,
            group["maximize"],
        )

    def _start_state(self, group):
        for param in group["params"]:
            if param.grad is None or self.state.get(param):
                continue
            if param.grad.is_sparse:
                refuse_sparse("Adam", "please consider SparseAdam instead")
            state = {
                "step": tg.tensor(0.0, dtype=tg.float32),
                "exp_avg": tg.zeros_like(param),
                "exp_avg_sq": tg.zeros_like(param),
            }
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = tg.zeros_like(param)
            self.state[param] = state

    def __setstate__(self, state):
        super().__setstate__(state)
        # Old checkpoints count steps with a Python number.
        for entries in self.state.values():
            if "step" in entries and not isinstance(entries["step"], tg.Tensor):
                entries["step"] = tg.tensor(float(entries["step"]), dtype=tg.float32)


@boundary
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017); arguments as `Adam`."""

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
        maximize=False, foreach=None, capturable=False, differentiable=False, fused=None,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
