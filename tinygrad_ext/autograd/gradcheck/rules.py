"""What every backward must obey: it is linear in the incoming gradients, and takes missing ones for zeros."""

import warnings

import numpy as np

from tinygrad_ext.autograd.engine import grad
from tinygrad_ext.autograd.function import Function
from tinygrad_ext.autograd.gradcheck.error import GradcheckError
from tinygrad_ext.autograd.gradcheck.gradients import random_gradient
from tinygrad_ext.autograd.gradcheck.subject import array
from tinygrad_ext.core.data.slots import get_slot

_ROWS = 4  # of gradients in a batch


class _Undefined(Function):
    """The identity whose backward passes no gradient on."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return None


def _zero_gradients(outputs, inputs):
    zeros = [get_slot("zeros")(t.shape, t.dtype, t.device) for t in outputs]
    return grad(outputs, [x for _, x in inputs], zeros, allow_unused=True)


def check_multiplied(outputs, inputs, masked):
    """Zero gradients in, zero gradients out; GradcheckError otherwise."""
    for g, (name, _) in zip(_zero_gradients(outputs, inputs), inputs):
        if g is None:
            continue
        values = array(g)
        if not (np.allclose(values, 0) if masked else (values == 0).all()):
            raise GradcheckError(
                f"backward not multiplied by grad_output: gradients of zero for all outputs gave {name} a gradient of "
                f"up to {np.abs(values).max():.3g}. A backward is linear in what comes in."
            )


def check_undefined(subject):
    """Missing gradients, of all outputs and of one at a time, count as zeros; GradcheckError otherwise."""
    count = len(subject.differentiable())
    for missing in (None, *range(count if count > 1 else 0)):
        outputs = subject.differentiable()
        _check_missing(subject, outputs, missing)


def _check_missing(subject, outputs, missing):
    told = "every output" if missing is None else f"output {missing}"
    cut = [_Undefined.apply(t) if missing in (None, i) else t for i, t in enumerate(outputs)]
    try:
        got = _zero_gradients(cut, subject.inputs)
    except (RuntimeError, TypeError, AttributeError) as error:
        _warn()
        raise GradcheckError(
            f"Expected backward function to handle undefined output grads: with None for the gradient of {told} it "
            f"raised {type(error).__name__}: {error}. Treat None as zero, or pass check_undefined_grad=False."
        ) from error
    for g, (name, _) in zip(got, subject.inputs):
        if g is not None and not (array(g) == 0).all():
            _warn()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero: with "
                f"None for the gradient of {told} and zeros for the others, {name} got a gradient of up to "
                f"{np.abs(array(g)).max():.3g}. Treat None as zero, or pass check_undefined_grad=False."
            )


def _warn():
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, as in "
        'PyTorch; pass "check_undefined_grad=False" to leave it out.',
        stacklevel=6,
    )


def check_batched(subject, rng, options):
    """Rows of gradients in one backward pass give what they give one by one; GradcheckError otherwise."""
    inputs = [x for _, x in subject.inputs]
    for i, output in enumerate(subject.differentiable()):
        seeds = get_slot("stack_rows")([random_gradient(output, rng, False).detach() for _ in range(_ROWS)])
        loop = [grad(output, inputs, seed, retain_graph=True, allow_unused=True) for seed in seeds]
        try:
            found = grad(output, inputs, seeds, retain_graph=True, allow_unused=True, is_grads_batched=True)
        except (RuntimeError, NotImplementedError) as error:
            raise GradcheckError(
                f"While computing batched gradients of output {i}, backward raised {type(error).__name__}: {error}. It "
                "ran under vmap: keep to operations on tensors there, or pass check_batched_grad=False."
            ) from error
        for k, (name, _) in enumerate(subject.inputs):
            if found[k] is None:
                continue
            expected = np.stack([array(row[k]) for row in loop])
            if not np.allclose(array(found[k]), expected, options.rtol, options.atol, equal_nan=True):
                raise GradcheckError(
                    f"Batched gradients of output {i} by {name} are not those of one backward pass after the other: "
                    f"they differ by up to {np.abs(array(found[k]) - expected).max():.3g}. A rule for vmap is wrong, "
                    "or backward keeps a state."
                )
