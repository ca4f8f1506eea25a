"""One update of one parameter group: the compiled loop, or the same formulas in ops.

The compiled functions take whole lists and return whether they did the update. They look at
every row before they change one, and decline (False, nothing changed) unless each parameter
that has a gradient is a plain strided CPU tensor of float32 or float64 whose gradient and
state have its dtype and shape. Rows without a gradient are skipped. This is what they promise:

    sgd_step(params, bufs, lr, momentum, dampening, weight_decay, nesterov, maximize) -> bool
        ``bufs`` is a list with a momentum buffer per parameter, or None if momentum is 0.
        A row that has a gradient but no buffer yet makes it decline.

    adam_step(params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps,
              weight_decay, decoupled, amsgrad, maximize) -> bool
        ``max_exp_avg_sqs`` is None without amsgrad. ``steps`` holds a 0-dim float32 tensor per
        parameter, which is increased by one. A row that lacks state makes it decline.

Both read ``param.grad`` themselves, write in place, bump the version of what they write, and
ignore grad mode. Options arrive as Python floats and bools.

To levels the update of a group is one operation, ``optim::sgd`` or ``optim::adam``, with these arguments.
"""

import tinygrad_ext as tg

from ..core.call.levels import atomic
from ..native import updates as native
from .checks import refuse_sparse


def sgd_in_ops(params, bufs, lr, momentum, dampening, weight_decay, nesterov, maximize, grads=None):
    """Do the update op by op, with gradients if they are on; missing entries of ``bufs`` are filled."""
    for row, param in enumerate(params):
        grad = param.grad if grads is None else grads[row]
        if grad is None:
            continue
        grad = -grad if maximize else grad
        if weight_decay:
            if grad.is_sparse:
                raise RuntimeError(
                    "SGD: add(sparse, dense) is not supported. Use add(dense, sparse) instead: weight_decay would give "
                    "a sparse gradient an element for each of the parameter; leave weight_decay 0"
                )
            grad = grad.add(param, alpha=weight_decay)
        if momentum:
            if bufs[row] is None:
                bufs[row] = grad.detach().clone()
            else:
                bufs[row].mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(bufs[row], alpha=momentum) if nesterov else bufs[row]
        param.add_(grad, alpha=-lr)


def adam_in_ops(params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, *options, grads=None):
    """Do the update op by op, with gradients if they are on; every parameter with a gradient has state."""
    most = max_exp_avg_sqs or [None] * len(params)
    grads = [param.grad for param in params] if grads is None else grads
    for param, grad, *state in zip(params, grads, exp_avgs, exp_avg_sqs, most, steps):
        if grad is not None:
            _adam_one(param, grad, *state, *options)


def _adam_one(
    param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step, lr, beta1, beta2, eps,
    weight_decay, decoupled, amsgrad, maximize,
):  # fmt: skip
    if grad.is_sparse:
        refuse_sparse("Adam", "please consider SparseAdam instead")
    grad = -grad if maximize else grad
    if weight_decay and decoupled:
        param.mul_(1 - lr * weight_decay)
    elif weight_decay:
        grad = grad.add(param, alpha=weight_decay)
    if param.is_complex():
        # Real and imaginary part are two parameters to Adam, not one of their common size.
        param, grad, exp_avg, exp_avg_sq = map(tg.view_as_real, (param, grad, exp_avg, exp_avg_sq))
        max_exp_avg_sq = tg.view_as_real(max_exp_avg_sq) if amsgrad else None
    step.add_(1)
    count = step.item()
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).add_(grad * grad, alpha=1 - beta2)
    if amsgrad:
        most = max_exp_avg_sq.clone() if tg.is_grad_enabled() else max_exp_avg_sq  # the graph keeps it as it was
        max_exp_avg_sq.copy_(tg.maximum(most, exp_avg_sq))
        exp_avg_sq = max_exp_avg_sq
    root = (1 - beta2**count) ** 0.5
    denominator = (exp_avg_sq.sqrt() / root).add_(eps)
    param.sub_(exp_avg / denominator, alpha=lr / (1 - beta1**count))


def _sgd_opened(params, bufs, *options):
    with tg.no_grad():
        sgd_in_ops(params, bufs, *options)
    return False


def _adam_opened(params, exp_avgs, *rest):
    if any(average is None and param.grad is not None for param, average in zip(params, exp_avgs)):
        return False
    with tg.no_grad():
        adam_in_ops(params, exp_avgs, *rest)
    return True


@atomic("optim::sgd", _sgd_opened)
def sgd(params, bufs, *options):
    """Update a group; whether the compiled loop did, which leaves ``bufs`` as they are."""
    return native.sgd_step(params, bufs, *options) or _sgd_opened(params, bufs, *options)


@atomic("optim::adam", _adam_opened)
def adam(params, exp_avgs, *rest):
    """Update a group; False when nothing was done because a parameter with a gradient has no state yet."""
    return native.adam_step(params, exp_avgs, *rest) or _adam_opened(params, exp_avgs, *rest)
