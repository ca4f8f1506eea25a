"""Adam for gradients of which few rows are stored."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .checks import check_betas, check_lr
from .per_parameter import OneByOne, number


@boundary
class SparseAdam(OneByOne):
    """Adam that changes averages and parameters only where a gradient of the layout sparse_coo has stored something.

    With the gradient g of a row at step t, and the row's m, v and p:
    ``m = beta1 * m + (1 - beta1) * g``, ``v = beta2 * v + (1 - beta2) * g²``, and
    ``p = p - lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)``. Steps are counted for a parameter, not for
    a row, and rows without a gradient stay as they are, averages and all.

    Args:
        params: plain tensors; see `Optimizer`.
        lr: step size, above 0.
        betas: how much of the two averages is kept.
        eps: added to the denominator, above 0.
        maximize: go uphill.

    Raises:
        ValueError: an option outside its range, a parameter that is sparse or complex.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_lr(lr)
        for what, value in (("learning rate", lr), ("epsilon value", eps)):
            if not value > 0:
                raise ValueError(f"Invalid {what}: {value}; it must be more than 0")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for what, advice, wrong in (
            ("Sparse", "requires dense parameter tensors", lambda param: param.is_sparse),
            ("Complex", "does not support complex parameters", lambda param: param.is_complex()),
        ):
            found = [
                [number, at]
                for number, group in enumerate(self.param_groups)
                for at, param in enumerate(group["params"])
                if wrong(param)
            ]
            if found:
                raise ValueError(f"{what} params at indices {found}: SparseAdam {advice}")

    def _update(self, param, grad, group):
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead, or sparse=True where the "
                "gradient comes from"
            )
        state = self.state[param]
        if not state:
            state.update(step=0, exp_avg=tg.zeros_like(param), exp_avg_sq=tg.zeros_like(param))
        state["step"] += 1
        grad = grad.coalesce()  # each row once, for its square is not the sum of squares
        if not grad.values().numel():
            return
        beta1, beta2 = map(number, group["betas"])
        values = -grad.values() if group["maximize"] else grad.values()
        average = _moved(state["exp_avg"], grad, values, 1 - beta1)
        square = _moved(state["exp_avg_sq"], grad, values.square(), 1 - beta2)
        size = group["lr"] * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        param.add_(grad.with_values(average.div_(square.sqrt_().add_(group["eps"])).mul_(-size)))


def _moved(average, grad, values, weight):
    """Move the rows of an average that the gradient stores towards values; returns what they are then."""
    old = average.sparse_mask(grad).values()
    change = (values - old).mul_(weight)
    average.add_(grad.with_values(change))
    return change.add_(old)
