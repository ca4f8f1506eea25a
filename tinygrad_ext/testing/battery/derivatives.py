"""Derivatives: do results take part in autograd, and are the numbers right, once and twice."""

import contextlib

import tinygrad_ext as tg
from tinygrad_ext.testing import compare, sweep
from tinygrad_ext.testing.battery.case import Case, mapped
from tinygrad_ext.testing.battery.check import OP_CHECKS, check
from tinygrad_ext.testing.battery.result import NotApplicable

NONE = "it has no derivative"


@check(OP_CHECKS, "autograd", dtypes="float", gap="gradcheck", requires_grad=True)
def autograd(subject, sample, dtype):
    """Gradients have the shape and dtype of their inputs, alone or together; grad mode does not change the result."""
    case = Case(sample, dtype)
    result, inputs = _call(subject, case.fresh())
    with tg.no_grad():
        plain, _ = _call(subject, case.fresh())
    if any(r.requires_grad and not r.is_leaf for r in plain):
        raise AssertionError("the result has a history although grad mode is off")
    if not sweep.is_random(subject.op) and not compare.same_bits(plain, result):
        raise AssertionError(f"gives {result} where gradients are wanted, and {plain} under no_grad")
    if all(r.is_leaf for r in result):  # an argument that is handed through is one
        raise NotApplicable(NONE)
    together = _gradients(result, inputs)
    for i, (t, g) in enumerate(zip(inputs, together)):
        if g is not None and (g.shape, g.dtype) != (t.shape, t.dtype):
            raise AssertionError(
                f"the gradient of tensor {i} is {g.dtype}{list(g.shape)}, the tensor {t.dtype}{list(t.shape)}"
            )
    for i, g in enumerate(together if len(inputs) > 1 else ()):
        alone = _alone(subject, case, i)
        if alone is not None and g is not None and not compare.same_bits(alone, g):
            raise AssertionError(f"the gradient of tensor {i} is {g} together with the others, {alone} alone")


def _call(subject, sample):
    """Results that are tensors, and the tensors that require grad."""
    inputs = [t for t in Case(sample, "").tensors if t.requires_grad]
    if not inputs:
        raise NotApplicable("it takes no floating tensor")
    return [
        r for r in compare.flatten(sweep.call(subject.op, sample.args, sample.kwargs)) if isinstance(r, tg.Tensor)
    ], inputs


def _gradients(result, inputs):
    outs = [r for r in result if r.requires_grad]
    with _registered():
        return tg.autograd.grad(outs, inputs, [tg.ones_like(r) for r in outs], allow_unused=True)


@contextlib.contextmanager
def _registered():
    """An op of `library` without a derivative says so when backward reaches it; here that is nothing wrong."""
    try:
        yield
    except RuntimeError as error:
        if "no autograd formula was registered" in str(error):
            raise NotApplicable(NONE) from error
        raise


def _alone(subject, case, i):
    """The gradient of input i when no other tensor requires grad; None when there is none."""
    sample = case.fresh()
    wanted = [t for t in Case(sample, "").tensors if t.requires_grad]
    for k, t in enumerate(wanted):
        t.requires_grad_(k == i)
    result, inputs = _call(subject, sample)
    return _gradients(result, inputs)[0] if any(r.requires_grad for r in result) else None


@check(OP_CHECKS, "meta_gradients", dtypes="float", gap="shape", requires_grad=True)
def meta_gradients(subject, sample, dtype):
    """On meta tensors forward and backward give the shapes and dtypes of the real gradients."""
    if sweep.tagged(subject.op, "data_dependent") or sweep.tagged(subject.op, "data_dependent_grad"):
        raise NotApplicable("a shape depends on the data, say its tags")
    result, inputs = _call(subject, sample)
    if all(r.is_leaf for r in result):
        raise NotApplicable(NONE)
    real = _gradients(result, inputs)
    fake = _gradients(*_call(subject, mapped(sample, _to_meta)))
    for i, (r, f) in enumerate(zip(real, fake)):
        if (r is None) != (f is None):
            raise AssertionError(f"the gradient of tensor {i} is {r} for real tensors, {f} on meta")
        if r is not None and (r.shape, r.dtype) != (f.shape, f.dtype):
            raise AssertionError(
                f"the gradient of tensor {i} is {r.dtype}{list(r.shape)} for real tensors, {f.dtype}{list(f.shape)} on "
                "meta"
            )


def _to_meta(t):
    fake = tg.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
    return fake.requires_grad_(t.requires_grad)


@check(OP_CHECKS, "derivative", dtypes="double", gap="gradcheck", requires_grad=True)
def derivative(subject, sample, dtype):
    """Gradients equal finite differences."""
    _checked(subject, sample, 1)


@check(OP_CHECKS, "second_derivative", dtypes="double", gap="gradgradcheck", requires_grad=True)
def second_derivative(subject, sample, dtype):
    """Gradients of gradients equal finite differences."""
    _checked(subject, sample, 2)


def _checked(subject, sample, order):
    sample = Case(sample, "").fresh()
    try:
        with _registered():
            there_is_one = sweep.derivatives_check(subject.op, sample, order)
    except tg.autograd.GradcheckError as error:
        raise AssertionError(str(error)) from error
    if not there_is_one:
        raise NotApplicable(NONE)
