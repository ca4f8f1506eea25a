"""Are the numbers right, and the same each time: reference, layouts, dtypes, odd shapes, repetition, threads."""

import contextlib
import sys
import threading

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.registry import variants
from tinygrad_ext.testing import compare, sweep
from tinygrad_ext.testing.battery.case import Case, mapped
from tinygrad_ext.testing.battery.check import OP_CHECKS, check
from tinygrad_ext.testing.battery.result import NotApplicable

THREADS, ROUNDS = 8, 4
REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError)


@check(OP_CHECKS, "reference", dtypes="supported")
def reference(subject, sample, dtype):
    """It gives what the record's reference gives."""
    if sweep.reference(subject.op) is None:
        raise NotApplicable("the record names no reference")
    if dtype == "bfloat16":
        raise NotApplicable("NumPy has no bfloat16")
    sweep.reference_agrees(subject.op, sample, dtype)


@check(OP_CHECKS, "errors", each="subject")
def errors(subject):
    """The calls that the record says must raise do."""
    listed = subject.op.record.errors or ()
    if not listed:
        raise NotApplicable("the record lists no errors")
    for call, kind, fragment in listed:
        try:
            call()
        except kind as error:
            if fragment not in str(error):
                raise AssertionError(f"the error {error!r} lacks {fragment!r}") from error
        else:
            raise AssertionError(f"a call that must raise {kind.__name__} with {fragment!r} raises nothing")


@check(OP_CHECKS, "layouts", dtypes="supported", gap="layout")
def layouts(subject, sample, dtype):
    """The same values in another memory layout give the same result."""
    _not_random(subject)
    sweep.layout_independent(subject.op, sample, dtype)


@check(OP_CHECKS, "dtypes", dtypes="every")
def dtypes(subject, sample, dtype):
    """float32 agrees with float64; a dtype it cannot take is refused by TypeError, ValueError or RuntimeError."""
    if dtype not in subject.dtypes:
        with contextlib.suppress(*REFUSALS):
            sweep.call(subject.op, sample.args, sample.kwargs)
        return None
    result = sweep.call(subject.op, sample.args, sample.kwargs)
    remark = f"computes in {', '.join(subject.dtypes)}"
    if dtype != "float32" or "float64" not in subject.dtypes or sweep.is_random(subject.op) or subject.op.is_view_op:
        return remark
    wide = mapped(sample, lambda t: t.detach().double() if t.dtype == tg.float32 else t)
    want = [_narrow(w, g) for w, g in zip(_flat(sweep.call(subject.op, wide.args, wide.kwargs)), _flat(result))]
    compare.assert_close(_flat(result), want, dtype, "float32 beside float64", factor=50, check_dtype=False)
    return remark


def _flat(result):
    return [r for r in compare.flatten(result) if isinstance(r, tg.Tensor)]


def _narrow(wide, result):
    """A float64 result as float32 where the other is, infinities of overflow included."""
    with np.errstate(all="ignore"):
        return wide.to(result.dtype) if wide.dtype == tg.float64 and result.is_floating_point() else wide


@check(OP_CHECKS, "odd_shapes", gap="odd shapes")
def odd_shapes(subject, sample, dtype):
    """0-d and empty operands give a result or a clean error."""
    sweep.survives_odd_shapes(subject.op, sample)


@check(OP_CHECKS, "inplace", dtypes="supported")
def inplace(subject, sample, dtype):
    """The in-place form leaves in self what the plain form returns."""
    _has(subject, "inplace", "in-place")
    if not sample.args or not isinstance(sample.args[0], tg.Tensor):
        raise NotApplicable("its first argument is no tensor")
    sweep.inplace_agrees(subject.op, sample, dtype)


@check(OP_CHECKS, "out", dtypes="supported")
def out(subject, sample, dtype):
    """out= is filled with the result and returned."""
    _has(subject, "out", "out=")
    sweep.out_agrees(subject.op, sample, dtype)


def _has(subject, variant, spelled):
    if variant not in variants(subject.op.record):
        raise NotApplicable(f"it has no {spelled} form")


def _not_random(subject):
    if sweep.is_random(subject.op):
        raise NotApplicable("its result is random")


def _not_unset(subject):
    if sweep.tagged(subject.op, "unset"):
        raise NotApplicable("its values may differ from call to call, say its tags")


@check(OP_CHECKS, "repeat", any_values=True)
def repeat(subject, sample, dtype):
    """The same call gives the same result again, whatever was computed in between; random ops after manual_seed."""
    _not_unset(subject)
    one = _kept(_outcome(subject.op, sample))
    with contextlib.suppress(Exception, SystemExit):
        _outcome(subject.op, rotated(sample, 1))
    two = _outcome(subject.op, sample)
    if not compare.same_bits(one, two):
        raise AssertionError(
            f"the second call gives {two}, the first gave {one}; an op that draws random numbers takes them from the "
            "generator of tinygrad_ext and says tags='random'"
        )


def _kept(result):
    """Results as they are now: a scratch buffer may be overwritten later."""
    return [r.detach().clone() if isinstance(r, tg.Tensor) else r for r in compare.flatten(result)]


def _outcome(op, sample):
    """The tensors and numbers of a call without gradients."""
    with tg.no_grad():
        return compare.flatten(sweep.call(op, sample.args, sample.kwargs))


def rotated(sample, k):
    """The sample with the rows of each tensor moved on by k places: other input of the same kind."""

    def moved(t):
        t = t.detach()
        if t.dim() > 1 and t.shape[0] > 1:
            return t.roll(k, 0)
        return t.reshape(-1).roll(k).reshape(t.shape) if t.dim() else t.clone()

    return mapped(sample, moved)


@check(OP_CHECKS, "threads", any_values=True)
def threads(subject, sample, dtype):
    """Eight threads at once, each with other values, get what one thread gets."""
    _not_random(subject)
    _not_unset(subject)
    plain = Case(sample, dtype)
    wanted, cases = [_kept(_outcome(subject.op, plain.fresh()))] * THREADS, [plain] * THREADS
    for k in range(1, THREADS):
        other = Case(rotated(sample, k), dtype)
        with contextlib.suppress(Exception, SystemExit):  # the op need not take values in another order
            wanted[k], cases[k] = _kept(_outcome(subject.op, other.fresh())), other
    for k, found in enumerate(_at_once(subject.op, cases)):
        for got in found:
            if not compare.same_bits(got, wanted[k]):
                raise AssertionError(
                    f"with {THREADS} threads at once one of them got {got}, alone it gets {wanted[k]}; is there a "
                    "buffer or a cache that threads share?"
                )


def _at_once(op, cases):
    """Results of ROUNDS calls in each of as many threads as there are cases."""
    found, gate = [[] for _ in cases], threading.Barrier(len(cases))

    def work(k):
        inputs = [cases[k].fresh() for _ in range(ROUNDS)]
        gate.wait()
        for sample in inputs:
            found[k].append(_kept(_run(op, sample)))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(len(cases))]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    finally:
        sys.setswitchinterval(before)
    return found


def _run(op, sample):
    """Like _outcome, for several threads: whatever is raised is a result, and nobody seeds the generator they share."""
    try:
        with tg.no_grad():
            result = sweep.function(op)(*sample.args, **sample.kwargs)
            written = sweep.written(op, sample.args, sample.kwargs)
            return compare.flatten((result, written) if written else result)
    except (Exception, SystemExit) as error:
        return [f"{type(error).__name__}: {error}"]
