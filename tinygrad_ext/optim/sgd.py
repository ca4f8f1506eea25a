"""Stochastic gradient descent."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import _fused
from .checks import check_fused, check_lr, check_not_negative, plain_number
from .optimizer import Optimizer


@boundary
class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    With the gradient g (plus ``weight_decay`` times the parameter p) and the momentum m:
    ``m = momentum * m + (1 - dampening) * g``, where the first m is g, and ``p = p - lr * m``.

    Args:
        params: see `Optimizer`.
        lr: step size.
        momentum, dampening: as above.
        weight_decay: strength of the L2 penalty.
        nesterov: step along ``g + momentum * m`` (Sutskever et al., 2013).
        maximize: go uphill.
        differentiable: let gradients flow through the step.
        foreach, fused: accepted; there is one implementation, which is fused.

    Raises:
        ValueError: a negative option, or nesterov without momentum or with dampening.
        RuntimeError: ``fused`` with ``foreach`` or ``differentiable``.
    """

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
        maximize=False, foreach=None, differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_fused(fused, foreach, differentiable)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"Nesterov momentum requires a momentum and zero dampening, got {momentum} and {dampening}"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def step(self, closure=None):
        """Update the parameters that have a gradient; returns what ``closure`` returned."""
        loss = None
        if closure is not None:
            with tg.enable_grad():
                loss = closure()
        for number, group in enumerate(self.param_groups):
            momentum = group["momentum"]
            update = (
                group["params"],
                self._state_columns(number, ("momentum_buffer",))[0] if momentum else None,
                plain_number(group["lr"]),
                momentum,
                group["dampening"],
                group["weight_decay"],
                group["nesterov"],
                group["maximize"],
            )
            update_of = _fused.sgd_in_ops if group["differentiable"] else _fused.sgd
            if not update_of(*update) and momentum:
                self._keep_buffers(*update[:2])
        return loss

    def _keep_buffers(self, params, bufs):
        for param, buf in zip(params, bufs):
            if buf is not None:
                self.state[param]["momentum_buffer"] = buf
