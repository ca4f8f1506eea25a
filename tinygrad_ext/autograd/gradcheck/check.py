"""The checks in their order: inputs, Jacobians, then the rules of backward."""

import time
import warnings
from dataclasses import dataclass

import numpy as np

from tinygrad_ext.autograd.gradcheck import rules
from tinygrad_ext.autograd.gradcheck.analytical import rows, views
from tinygrad_ext.autograd.gradcheck.compare import compare
from tinygrad_ext.autograd.gradcheck.error import GradcheckError
from tinygrad_ext.autograd.gradcheck.forward import check_batched_forward, check_forward
from tinygrad_ext.autograd.gradcheck.numerical import Columns
from tinygrad_ext.autograd.gradcheck.projection import Pulls, Pushes, compare_sums
from tinygrad_ext.autograd.gradcheck.result import GradcheckResult
from tinygrad_ext.autograd.gradcheck.sampling import Budget, sample
from tinygrad_ext.autograd.gradcheck.subject import overlaps


@dataclass(frozen=True)
class Options:
    """What gradcheck and gradgradcheck were asked for."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_batched_grad: bool
    fast_mode: bool
    masked: bool | None
    seed: int
    time_limit: float | None
    max_columns: int | None
    forward: bool = False
    batched_forward: bool = False
    backward: bool = True

    def __post_init__(self):
        if not self.eps > 0:
            raise ValueError(f"gradcheck: eps must be positive, got {self.eps}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"gradcheck: time_limit must be positive (seconds), got {self.time_limit}")
        if self.max_columns is not None and self.max_columns < 0:
            raise ValueError(f"gradcheck: max_columns must not be negative, got {self.max_columns}")


def run(subject, options, raise_exception, return_result):
    """Check a subject; True, False, the GradcheckResult or a GradcheckError, as was asked for."""
    result = check(subject, options)
    if return_result or result.ok:
        return result if return_result else True
    if raise_exception:
        raise result.error()
    return False


def check(subject, options):
    """The GradcheckResult of a subject."""
    result = GradcheckResult(options.eps, options.atol, options.rtol, options.seed)
    check_inputs(subject)
    try:
        _check_jacobians(subject, options, result)
    except GradcheckError as problem:
        result.problems.append(str(problem))
    return result


def check_inputs(subject):
    """Raise or warn where differences cannot work."""
    if not subject.inputs:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i, (name, x) in enumerate(subject.tensors):
        if not x.requires_grad:
            continue
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex ({name} is "
                f"{x.dtype}). This check will likely fail: eps is small for coarser numbers. Pass {name}.double().",
                stacklevel=5,
            )
        if overlaps(x) and 0 in x.stride():
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0 ({name}, of shape {tuple(x.shape)}): its elements "
                f"share memory and cannot be moved one at a time. Pass {name}.contiguous()."
            )
        if overlaps(x):
            raise RuntimeError(
                f"The {i}th input ({name}) has elements that share memory; they cannot be moved one at a time. Pass "
                f"{name}.contiguous()."
            )


def _check_jacobians(subject, options, result):
    started = time.monotonic()
    outputs = subject.outputs()
    call_seconds = time.monotonic() - started
    found, rng = views(outputs), np.random.default_rng(options.seed)
    budget = Budget(options)
    whole = budget.allows_all(subject, found, call_seconds)
    if options.forward:
        check_forward(subject, outputs, options, whole, rng)
    if options.batched_forward:
        check_batched_forward(subject, options, rng)
    if not options.backward:
        return
    if whole:
        _compare_all(subject, outputs, found, options, result)
    else:
        _compare_some(subject, outputs, found, options, budget, rng, result)
    if not found or not result.ok:
        return
    rules.check_multiplied([t for _, t in outputs if t.requires_grad], subject.inputs, options.masked)
    if options.check_undefined_grad:
        rules.check_undefined(subject)
    if options.check_batched_grad:
        rules.check_batched(subject, np.random.default_rng(options.seed), options)


def _compare_all(subject, outputs, found, options, result):
    numbers = range(len(subject.inputs))
    columns = [Columns(subject, k, range(x.numel()), options.eps) for k, (_, x) in enumerate(subject.inputs)]
    for k in numbers:
        for o, (name, t) in enumerate(outputs):
            if not t.requires_grad and len(columns[k].picked):
                _constant(name, subject.inputs[k][0], [a[o] for a in columns[k].along], bool(found), result)
    for view in found:
        everything = np.arange(view.tensor.numel())
        _, analytical = rows(view, everything, subject.inputs, [c.picked for c in columns], options.nondet_tol)
        for k in numbers:
            numerical = columns[k].part(view.position, view.part)
            if numerical is None:
                numerical = np.zeros(analytical[k].shape)
            picked = columns[k].picked
            result.pairs.append(compare(subject, view, k, numerical, analytical[k], picked, everything, options))


def _compare_some(subject, outputs, found, options, budget, rng, result):
    """Sums over everything, then the elements that the budget allows."""
    numbers = range(len(subject.inputs))
    pushes = [Pushes(subject, k, options.eps, rng) for k in numbers]
    for k in numbers:
        for o, (name, t) in enumerate(outputs):
            if not t.requires_grad:
                _constant(name, subject.inputs[k][0], [s[o] for s in pushes[k].slopes], bool(found), result)
    pulls = [Pulls(view, subject.inputs, options, rng) for view in found]
    if budget.most == 0:
        for view, pull in zip(found, pulls):
            for k in numbers:
                result.pairs.append(compare_sums(subject, view, k, pushes[k], pull, options))
        return
    columns = _sampled_columns(subject, outputs, pulls, options, budget, rng)
    for i, (view, pull) in enumerate(zip(found, pulls)):
        picked, analytical = _sampled_rows(subject, view, i, len(found), pushes, columns, options, budget, rng)
        for k in numbers:
            pair = compare_sums(subject, view, k, pushes[k], pull, options)
            result.pairs.append(_with_sample(subject, view, k, pair, columns[k], picked, analytical[k], options))


def _sampled_columns(subject, outputs, pulls, options, budget, rng):
    found = []
    moved = sum(t.numel() for _, t in outputs)
    for k, (_, x) in enumerate(subject.inputs):
        likely = np.logical_or.reduce([np.zeros(x.numel(), bool), *(p.reached(k) for p in pulls if p.gradients)])
        picked = sample(rng, likely, budget.count(x.numel(), moved))
        found.append(Columns(subject, k, picked, options.eps, budget.deadline((k + 1) / (2 * len(subject.inputs)))))
    return found


def _sampled_rows(subject, view, i, count, pushes, columns, options, budget, rng):
    """(output elements, their rows): first those that the sampled input elements move."""
    n = view.tensor.numel()
    moved = [c.part(view.position, view.part) for c in columns]
    likely = np.logical_or.reduce([np.zeros(n, bool), *((m != 0).any(0) for m in moved if m is not None)])
    if not likely.any():
        likely = np.logical_or.reduce([likely, *(p.reached(view.position) for p in pushes if p.slopes)])
    picked = sample(rng, likely, budget.count(n))
    deadline = budget.deadline(0.5 + (i + 1) / (2 * count))
    kept = [c.picked for c in columns]
    done, found = rows(view, picked, subject.inputs, kept, options.nondet_tol, deadline)
    return picked[:done], found


def _with_sample(subject, view, number, pair, columns, picked, analytical, options):
    """The pair by its sums, or by its sampled entries when these are wrong or say more."""
    numerical = columns.part(view.position, view.part)
    if not pair.ok or numerical is None:
        return pair
    chosen = columns.picked
    entries = compare(subject, view, number, numerical[:, picked], analytical, chosen, picked, options)
    if entries.columns[0] < entries.columns[1] or entries.rows[0] < entries.rows[1]:
        entries.blind_below = pair.blind_below
    return entries


def _constant(name, input_name, slopes, others, result):
    """An output that needs no gradient should not move with the input."""
    if not any((s != 0).any() for s in slopes):
        return
    if others:
        result.notes.append(
            f"{name} does not require grad though it moves with {input_name}: it was not checked, as in PyTorch"
        )
        return
    raise GradcheckError(
        f"Numerical gradient for function expected to be zero: no output requires grad, yet {name} moves with "
        f"{input_name}. Its graph was cut, for example by detach(), .data, no_grad or a trip through Python numbers."
    )
