"""Muon: momentum whose singular values are all made nearly one."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_lr, check_not_negative, refuse_sparse
from .per_parameter import OneByOne, number

_RATIOS = {
    "original": lambda rows, columns: max(1, rows / columns) ** 0.5,
    "match_rms_adamw": lambda rows, columns: 0.2 * max(rows, columns) ** 0.5,
}


@boundary
class Muon(OneByOne):
    """Muon (Jordan, 2024), for matrices alone.

    With the gradient g: ``m = momentum * m + (1 - momentum) * g``, ``u`` that, or with nesterov what lies ``momentum``
    of the way from g to it, and ``p = p * (1 - lr * weight_decay) - lr * ratio * orthogonal(u)``. ``orthogonal`` is
    ``ns_steps`` steps of ``x = a * x + (b * s + c * s @ s) @ x``, ``s = x @ x.T``, in bfloat16, from ``u / |u|``.

    Args:
        params: see `Optimizer`; two-dimensional ones.
        lr: step size.
        weight_decay: share of the parameter, times lr, that is taken off.
        momentum: decay of m.
        nesterov: whether to look ahead.
        ns_coefficients: a, b and c.
        eps: the least norm that u is divided by.
        ns_steps: how many steps make u orthogonal.
        adjust_lr_fn: ratio; "original" or None: ``sqrt(max(1, rows / columns))``; "match_rms_adamw":
            ``0.2 * sqrt(max(rows, columns))``.

    Raises:
        ValueError: an option out of range, or a parameter that is no matrix.
    """

    def __init__(
        self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        if adjust_lr_fn is not None and adjust_lr_fn not in _RATIOS:
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported: it is one of {', '.join(_RATIOS)}"
            )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{tuple(param.shape)}; leave vectors and others to another optimizer"
                    )

    def _update(self, param, grad, group):
        if grad.is_sparse:
            refuse_sparse("Muon")
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters: give it view_as_real's")
        if group["ns_steps"] >= 100 or len(group["ns_coefficients"]) != 3:
            raise ValueError(
                f"Muon: ns_steps={group['ns_steps']} and ns_coefficients={group['ns_coefficients']}: expected "
                "less than 100 steps, five do, and three coefficients"
            )
        if not self.state[param]:
            self.state[param] = {"momentum_buffer": tg.zeros_like(grad)}
        average, lr = self.state[param]["momentum_buffer"], group["lr"]
        average.lerp_(grad, 1 - group["momentum"])
        update = grad.lerp(average, group["momentum"]) if group["nesterov"] else average
        update = _orthogonal(update, *group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - lr * group["weight_decay"])
        ratio = _RATIOS[group["adjust_lr_fn"] or "original"](*param.shape)
        param.add_(update, alpha=-number(lr * ratio))


def _orthogonal(matrix, a, b, c, steps, eps):
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.mT if tall else matrix).bfloat16()
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.mT
        x = tg.addmm(x, tg.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
