"""Grad modes, hooks and saved tensors inside transforms and around them."""

from contextlib import nullcontext

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func
from tinygrad_ext.autograd.graph import saved_tensors_hooks

MODES = {
    "nothing": nullcontext,
    "no_grad": tg.no_grad,
    "inference_mode": tg.inference_mode,
    "enable_grad": tg.enable_grad,
}
ROWS = tg.tensor([0.3, 0.7, 1.1])


def _program(mode):
    def f(x):
        with MODES[mode]():
            y = x.sin()
        return y * x

    return f


# the derivative of y * x where y counts as a constant, or not
WHOLE, PART = ROWS.cos() * ROWS + ROWS.sin(), ROWS.sin()
REVERSE = {
    "grad": lambda f, x: func.grad(lambda x: f(x).sum())(x),
    "vjp": lambda f, x: func.vjp(f, x)[1](tg.ones(3))[0],
    "jacrev": lambda f, x: func.jacrev(f)(x).diagonal(),
    "vmap of grad": lambda f, x: func.vmap(func.grad(f))(x),
    "grad of vmap": lambda f, x: func.grad(lambda x: func.vmap(f)(x).sum())(x),
    "linearize": lambda f, x: func.linearize(f, x)[1](tg.ones(3)),
}
FORWARD = {
    "jvp": lambda f, x: func.jvp(f, (x,), (tg.ones(3),))[1],
    "jacfwd": lambda f, x: func.jacfwd(f)(x).diagonal(),
    "vmap of jvp": lambda f, x: func.vmap(lambda r: func.jvp(f, (r,), (tg.ones(()),))[1])(x),
}


@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize("outside", MODES)
def test_modes_around_a_transform_change_nothing(outside, made_inside):
    f = _program("nothing")
    with MODES[outside]():
        x = ROWS * 1 if made_inside else ROWS
        for name, run in {**REVERSE, **FORWARD}.items():
            got = run(f, x)
            assert tg.allclose(got, WHOLE) and not got.requires_grad, name
        assert tg.allclose(func.hessian(lambda x: f(x).sum())(x).diagonal(), 2 * ROWS.cos() - ROWS * ROWS.sin())


@pytest.mark.parametrize("outside", ["nothing", "no_grad"])
@pytest.mark.parametrize("inside", ["no_grad", "inference_mode"])
def test_modes_inside_make_constants(inside, outside):
    f = _program(inside)
    with MODES[outside]():
        if inside == "no_grad":
            for name, run in REVERSE.items():
                assert tg.allclose(run(f, ROWS), PART), name
        for name, run in FORWARD.items():
            # forward mode needs no recording, so no_grad is nothing to it
            assert tg.allclose(run(f, ROWS), WHOLE if inside == "no_grad" else PART), name


def test_results_may_be_differentiated_from_outside_unless_recording_is_off():
    x = ROWS.clone().requires_grad_()
    for name, run in {**REVERSE, **FORWARD}.items():
        assert run(_program("nothing"), x).requires_grad, name
        with tg.no_grad():
            assert not run(_program("nothing"), x).requires_grad, name
    (bent,) = tg.autograd.grad(func.linearize(tg.sin, x)[1](tg.ones(3)).sum(), x)
    assert tg.allclose(bent, -ROWS.sin())


def test_hooks_of_a_tensor_inside_change_its_gradient():
    def f(x):
        y = x.sin()
        y.register_hook(lambda g: g * 10)
        return y.sum()

    assert tg.allclose(func.grad(f)(ROWS), 10 * ROWS.cos())
    assert tg.allclose(func.vmap(func.grad(f))(ROWS), 10 * ROWS.cos())


def test_hooks_see_one_sample_s_shape_under_vmap():
    shapes = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: shapes.append(tuple(g.shape)))
        return y.sum()

    func.vmap(func.grad(f))(tg.rand(5, 3))
    assert shapes == [(3,)]


def test_saved_tensors_go_through_hooks_around_a_transform():
    packed = []

    def pack(t):
        packed.append(tuple(t.shape))
        return t

    with saved_tensors_hooks(pack, lambda t: t):
        got = func.grad(lambda x: (x.sin() * x).sum())(ROWS)
    assert tg.allclose(got, WHOLE) and packed
    packed.clear()
    with saved_tensors_hooks(pack, lambda t: t):
        got = func.vmap(func.grad(lambda x: (x.sin() * x).sum()))(tg.stack([ROWS, ROWS]))
    assert tg.allclose(got, tg.stack([WHOLE, WHOLE])) and (2, 3) in packed


def test_saved_tensors_go_through_hooks_inside_a_transform():
    packed = []

    def f(x):
        with saved_tensors_hooks(lambda t: packed.append(1) or t.clone(), lambda t: t):
            return x.exp().sum()

    assert tg.allclose(func.grad(f)(ROWS), ROWS.exp()) and packed


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("outside", MODES)
@pytest.mark.parametrize("inside", ["nothing", "no_grad", "enable_grad"])
def test_first_derivatives_are_pytorch_s_in_all_modes(outside, inside):
    torch = pytest.importorskip("torch")
    theirs = {"nothing": nullcontext, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
    theirs["enable_grad"] = torch.enable_grad

    def g(x):
        with theirs[inside]():
            y = x.sin()
        return y * x

    x = torch.tensor(ROWS.tolist())
    with theirs[outside]():
        wanted = torch.func.grad(lambda x: g(x).sum())(x), torch.func.jvp(g, (x,), (torch.ones(3),))[1]
    with MODES[outside]():
        f = _program(inside)
        got = func.grad(lambda x: f(x).sum())(ROWS), func.jvp(f, (ROWS,), (tg.ones(3),))[1]
    for a, b in zip(got, wanted):
        assert tg.allclose(a, tg.tensor(b.tolist()))
