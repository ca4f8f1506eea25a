"""Second derivatives through ops that write over a view and keep what they wrote."""

import contextlib

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, gradgradcheck


class Exp(Function):
    """Of tensors of a user: written in place, and its result is kept."""

    @staticmethod
    def forward(ctx, x):
        with tg.no_grad():
            x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


WRITES = {
    name: lambda t, name=name: getattr(t, name)()
    for name in (
        "sigmoid_",
        "exp_",
        "tanh_",
        "sqrt_",
        "relu_",
        "reciprocal_",
        "rsqrt_",
        "tan_",
        "expm1_",
        "neg_",
        "sin_",
    )
}
WRITES["Function"] = Exp.apply
VIEWS = {
    "slice": lambda b: b[1:],
    "transposed": lambda b: b.t(),
    "view of a view": lambda b: b[1:].reshape(-1)[::2],
    "real part": lambda b: tg.view_as_complex(b).real,
    "whole": lambda b: b.view(-1),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", WRITES)
def test_the_base_has_the_derivatives_of_what_was_written(write, view):
    def run(x):
        base = x * 1
        part = VIEWS[view](base)
        part = WRITES[write](part)
        return (part * part).sum() + (base * base * base).sum()

    x = (tg.rand(3, 2, dtype=tg.float64, generator=tg.Generator().manual_seed(0)) * 0.5 + 0.3).requires_grad_()
    assert gradgradcheck(run, (x,))
    (first,) = tg.autograd.grad(run(x), x, create_graph=True)
    tg.autograd.grad((first * first).sum(), x)  # lets go of each node once


class Squared(Exp):
    """Differentiates what it wrote with its history, in backward."""

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        with tg.enable_grad():
            z = (y * y).sum() / 2
        return grad * tg.autograd.grad(z, y)[0]


def test_what_was_kept_has_a_history_where_nothing_is_recorded():
    for part in (slice(None), slice(1, None)):
        x = tg.arange(4.0).requires_grad_()
        base = x * 1
        Squared.apply(base[part] if part.start else base)
        wanted = x.detach().exp()
        if part.start:
            wanted[0] = 1
        assert tg.allclose(tg.autograd.grad(base.sum(), x)[0], wanted)


@pytest.mark.parametrize("view", ["slice", "transposed"])
def test_what_an_unpack_hook_made_is_no_window_of_the_base(view):
    def second(hooks, **options):
        x = (tg.arange(24.0, dtype=tg.float64).reshape(4, 6) / 19 + 0.1).requires_grad_()
        with hooks:
            base = x * 1
            VIEWS[view](base).exp_()
        (first,) = tg.autograd.grad((base * base).sum(), x, create_graph=True)
        return tg.autograd.grad((first * tg.arange(24.0).reshape(4, 6)).sum(), x, **options)[0]

    hooks = tg.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)
    assert tg.allclose(second(hooks, retain_graph=True), second(contextlib.nullcontext()))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        second(hooks)
