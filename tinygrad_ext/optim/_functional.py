"""Optimizers as functions of lists: parameters, gradients, and a list for each kind of state, all written in place.

Each does what one step of its class does, by the same code, with PyTorch's order of arguments. ``foreach``,
``capturable`` and ``has_complex`` are taken and change nothing; ``fused`` alone knows `grad_scale` and `found_inf`.
The mode of gradients is the caller's: a leaf that requires one is written under ``no_grad`` alone.
"""

import functools

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import _fused
from ._adafactor import Adafactor as _Adafactor
from .adadelta import Adadelta as _Adadelta
from .adagrad import Adagrad as _Adagrad
from .adamax import Adamax as _Adamax
from .asgd import ASGD as _ASGD
from .checks import check_fused, plain_number
from .muon import Muon as _Muon
from .nadam import NAdam as _NAdam
from .radam import RAdam as _RAdam
from .rmsprop import RMSprop as _RMSprop
from .rprop import Rprop as _Rprop
from .sparse_adam import SparseAdam as _SparseAdam


@functools.cache
def _bare(kind):
    """An optimizer of nothing, whose formula is asked."""
    return kind.__new__(kind)


def _check_steps(name, state_steps):
    if not all(isinstance(step, tg.Tensor) for step in state_steps):
        raise RuntimeError(
            f"{name}: API has changed, `state_steps` argument must contain a list of singleton tensors, got "
            f"{sorted({type(step).__name__ for step in state_steps})}"
        )


def _each(kind, params, grads, columns, state_steps, differentiable=False, **group):
    """One step of each parameter; a list of state that is empty is state that these options do without."""
    _check_steps(kind.__name__, state_steps)
    optimizer, group["differentiable"] = _bare(kind), differentiable or tg.is_grad_enabled()
    names, lists = zip(*(("step", state_steps), *((name, found) for name, found in columns.items() if found)))
    for param, grad, *state in zip(params, grads, *lists, strict=True):
        optimizer._update_one(param, grad, dict(zip(names, state)), group)


def _scaled(name, grads, fused, grad_scale, found_inf):
    """Whether to step at all; divides the gradients by the scale. AssertionError for either without ``fused``."""
    if not fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError(f"{name}: grad_scale and found_inf are for fused=True: expected None for both without it")
    if found_inf is not None and float(found_inf):
        return False
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale)
    return True


def _with_grads(params, grads):
    """Views of the parameters that carry these gradients: what compiled steps read; None where history is recorded."""
    if tg.is_grad_enabled() and any(t.requires_grad for t in (*params, *grads)):
        return None
    views = [param.detach() for param in params]
    for view, grad in zip(views, grads, strict=True):
        view.grad = grad
    return views


@boundary
def adadelta(
    params, grads, square_avgs, acc_deltas, state_steps, capturable=False, foreach=None, differentiable=False,
    has_complex=False, *, lr, rho, eps, weight_decay, maximize,
):  # fmt: skip
    """One step of `Adadelta`."""
    columns = {"square_avg": square_avgs, "acc_delta": acc_deltas}
    _each(
        _Adadelta, params, grads, columns, state_steps, differentiable,
        lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize,
    )  # fmt: skip


@boundary
def adagrad(
    params, grads, state_sums, state_steps, fused=None, grad_scale=None, found_inf=None, has_sparse_grad=False,
    foreach=None, differentiable=False, has_complex=False, *, lr, weight_decay, lr_decay, eps, maximize,
):  # fmt: skip
    """One step of `Adagrad`."""
    check_fused(fused, foreach, differentiable)
    if _scaled("adagrad", grads, fused, grad_scale, found_inf):
        _each(
            _Adagrad, params, grads, {"sum": state_sums}, state_steps, differentiable,
            lr=lr, weight_decay=weight_decay, lr_decay=lr_decay, eps=eps, maximize=maximize,
        )  # fmt: skip


@boundary
def adam(
    params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False,
    differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False,
    decoupled_weight_decay=False, *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize,
):  # fmt: skip
    """One step of `Adam`."""
    check_fused(fused, foreach, differentiable)
    _check_steps("adam", state_steps)
    if not _scaled("adam", grads, fused, grad_scale, found_inf):
        return
    options = (
        *map(plain_number, (lr, beta1, beta2, eps, weight_decay)), decoupled_weight_decay, amsgrad, maximize,
    )  # fmt: skip
    columns = (exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else None, state_steps)
    views = None if differentiable else _with_grads(params, grads)
    if views is None:
        _fused.adam_in_ops(params, *columns, *options, grads=grads)
    else:
        _fused.adam(views, *columns, *options)


@boundary
def adamw(
    params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False,
    differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False, *,
    amsgrad, beta1, beta2, lr, weight_decay, eps, maximize,
):  # fmt: skip
    """One step of `AdamW`."""
    adam(
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable, fused,
        grad_scale, found_inf, has_complex, True,
        amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize,
    )  # fmt: skip


@boundary
def adamax(
    params, grads, exp_avgs, exp_infs, state_steps, foreach=None, maximize=False, differentiable=False,
    capturable=False, has_complex=False, *, eps, beta1, beta2, lr, weight_decay,
):  # fmt: skip
    """One step of `Adamax`."""
    columns = {"exp_avg": exp_avgs, "exp_inf": exp_infs}
    _each(
        _Adamax, params, grads, columns, state_steps, differentiable,
        lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, maximize=maximize,
    )  # fmt: skip


@boundary
def asgd(
    params, grads, axs, mus, etas, state_steps, foreach=None, maximize=False, differentiable=False, capturable=False,
    has_complex=False, *, lambd, lr, t0, alpha, weight_decay,
):  # fmt: skip
    """One step of `ASGD`."""
    columns = {"ax": axs, "mu": mus, "eta": etas}
    _each(
        _ASGD, params, grads, columns, state_steps, differentiable,
        lambd=lambd, lr=lr, t0=t0, alpha=alpha, weight_decay=weight_decay, maximize=maximize,
    )  # fmt: skip


@boundary
def nadam(
    params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, decoupled_weight_decay=False, foreach=None,
    capturable=False, differentiable=False, has_complex=False, maximize=False, *,
    beta1, beta2, lr, weight_decay, momentum_decay, eps,
):  # fmt: skip
    """One step of `NAdam`."""
    columns = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products}
    _each(
        _NAdam, params, grads, columns, state_steps, differentiable, lr=lr, betas=(beta1, beta2), eps=eps,
        weight_decay=weight_decay, momentum_decay=momentum_decay, decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
    )  # fmt: skip


@boundary
def radam(
    params, grads, exp_avgs, exp_avg_sqs, state_steps, decoupled_weight_decay=False, foreach=None,
    differentiable=False, capturable=False, has_complex=False, maximize=False, *, beta1, beta2, lr, weight_decay, eps,
):  # fmt: skip
    """One step of `RAdam`."""
    columns = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    _each(
        _RAdam, params, grads, columns, state_steps, differentiable, lr=lr, betas=(beta1, beta2), eps=eps,
        weight_decay=weight_decay, decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
    )  # fmt: skip


@boundary
def rmsprop(
    params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, foreach=None, maximize=False,
    differentiable=False, capturable=False, has_complex=False, *, lr, alpha, eps, weight_decay, momentum, centered,
):  # fmt: skip
    """One step of `RMSprop`."""
    columns = {"square_avg": square_avgs, "grad_avg": grad_avgs, "momentum_buffer": momentum_buffer_list}
    _each(
        _RMSprop, params, grads, columns, state_steps, differentiable, lr=lr, alpha=alpha, eps=eps,
        weight_decay=weight_decay, momentum=momentum, centered=centered, maximize=maximize,
    )  # fmt: skip


@boundary
def rprop(
    params, grads, prevs, step_sizes, state_steps, foreach=None, capturable=False, maximize=False,
    differentiable=False, has_complex=False, *, step_size_min, step_size_max, etaminus, etaplus,
):  # fmt: skip
    """One step of `Rprop`."""
    _each(
        _Rprop, params, grads, {"prev": prevs, "step_size": step_sizes}, state_steps, differentiable,
        etas=(etaminus, etaplus), step_sizes=(step_size_min, step_size_max), maximize=maximize,
    )  # fmt: skip


@boundary
def sgd(
    params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, grad_scale=None,
    found_inf=None, *, weight_decay, momentum, lr, dampening, nesterov, maximize,
):  # fmt: skip
    """One step of `SGD`; a momentum buffer that is None becomes one."""
    check_fused(fused, foreach, False)
    if not _scaled("sgd", d_p_list, fused, grad_scale, found_inf):
        return
    options = (*map(plain_number, (lr, momentum, dampening, weight_decay)), nesterov, maximize)
    buffers = momentum_buffer_list if momentum else None
    views = _with_grads(params, d_p_list)
    if views is None:
        _fused.sgd_in_ops(params, buffers, *options, grads=d_p_list)
    else:
        _fused.sgd(views, buffers, *options)


@boundary
def adafactor(
    params, grads, row_vars, col_vars, variances, state_steps, foreach=None, grad_scale=None, found_inf=None,
    has_complex=False, *, d, lr, beta2_decay, weight_decay, eps1, eps2, maximize,
):  # fmt: skip
    """One step of `Adafactor`."""
    _scaled("adafactor", grads, False, grad_scale, found_inf)
    columns = {"row_var": row_vars, "col_var": col_vars, "variance": variances}
    _each(
        _Adafactor, params, grads, columns, state_steps,
        d=d, lr=lr, beta2_decay=beta2_decay, weight_decay=weight_decay, eps=(eps1, eps2), maximize=maximize,
    )  # fmt: skip


@boundary
def muon(
    params, grads, muon_momentum_bufs, *, foreach=None,
    lr, weight_decay, momentum, nesterov, ns_coefficients, ns_steps, eps, adjust_lr_fn, has_complex,
):  # fmt: skip
    """One step of `Muon`."""
    group = {
        "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "eps": eps,
        "ns_coefficients": ns_coefficients, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
    }  # fmt: skip
    for param, grad, buffer in zip(params, grads, muon_momentum_bufs, strict=True):
        optimizer = _Muon.__new__(_Muon)
        optimizer.state = {param: {"momentum_buffer": buffer}}
        optimizer._update(param, grad, group)


@boundary
def sparse_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize):
    """One step of `SparseAdam`; ``state_steps`` are the numbers of this step, which are left alone."""
    group = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "maximize": maximize}
    for param, grad, average, square, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        optimizer = _SparseAdam.__new__(_SparseAdam)
        optimizer.state = {param: {"step": step - 1, "exp_avg": average, "exp_avg_sq": square}}
        optimizer._update(param, grad, group)
