"""Adafactor: the mean squares of a matrix kept as one row and one column."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_lr, check_not_negative
from .per_parameter import PerParameter, new_count, number


@boundary
class Adafactor(PerParameter):
    """Adafactor (Shazeer and Stern, 2018), whose state for (..., n, m) has n + m elements instead of n * m.

    The mean squares decay by ``1 - t^beta2_decay``; a step is scaled by the size of p, and cut to the size ``d``.

    Args:
        params: see `Optimizer`; real ones.
        lr: the largest step, relative to the size of p.
        beta2_decay: see above.
        eps: the least mean square (None: that of the dtype), the least size of p.
        d: see above.
        weight_decay: the share ``lr * weight_decay`` is taken off p directly.
        maximize: go uphill.
        foreach: accepted; there is one implementation.

    Raises:
        ValueError: an option out of range.
        RuntimeError: a complex parameter.
    """

    _penalty = False

    def __init__(
        self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *,
        foreach=None, maximize=False,
    ):  # fmt: skip
        check_lr(lr)
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        for name, value in (("epsilon1", eps[0] or 0), ("epsilon2", eps[1])):
            if value < 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _first_state(self, param, group):
        if param.is_complex():
            raise RuntimeError(
                "Adafactor does not support complex parameters; make a real one and view it with view_as_complex"
            )
        state = {"step": new_count()}
        if param.dim() > 1:
            *lead, rows, columns = param.shape
            state["row_var"] = param.new_zeros((*lead, rows, 1))
            state["col_var"] = param.new_zeros((*lead, 1, columns))
        else:
            state["variance"] = tg.zeros_like(param)
        return state

    def _update(self, param, grad, state, group):
        lr, (least, least_size) = number(group["lr"]), group["eps"]
        least = tg.finfo(param.dtype).eps if least is None else least
        count = state["step"].item()
        root = math.sqrt(param.numel())
        step_size = max(least_size, param.norm(2).item() / root) * min(lr, 1 / math.sqrt(count))
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        squares = _mean_squares(grad, state, count ** group["beta2_decay"], least)
        update = squares.clamp(min=least * least).rsqrt() * grad
        excess = max(1.0, update.norm(2).item() / (root * group["d"]))
        param.add_(update, alpha=-step_size / excess)


def _mean_squares(grad, state, share, least):
    if grad.dim() <= 1:
        return state["variance"].lerp_(grad * grad, share)
    for name, dim in (("row_var", -1), ("col_var", -2)):
        mean = grad.norm(2, dim=dim, keepdim=True).square() / grad.size(dim)
        state[name].lerp_(mean, share)
    rows = state["row_var"]
    return (rows @ state["col_var"]) / rows.mean(dim=-2, keepdim=True).clamp(min=least)
