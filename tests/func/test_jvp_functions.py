"""Forward mode of autograd.Functions and custom ops."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func, library

X = tg.tensor([0.3, -0.7, 1.2], dtype=tg.float64)
V = tg.tensor([1.0, 2.0, -1.0], dtype=tg.float64)


def close(got, want):
    tg.testing.assert_close(got, want)


class Scaled(tg.autograd.Function):
    """exp(x) * k, with a forward that takes the ctx."""

    @staticmethod
    def forward(ctx, x, k):
        result = x.exp() * k
        ctx.save_for_forward(result)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0], None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * ctx.saved_tensors[0]


class Two(tg.autograd.Function):
    """exp(x) and sin(x), with a setup_context."""

    @staticmethod
    def forward(x):
        return x.exp(), x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(inputs[0], output[0])
        ctx.save_for_backward(inputs[0], output[0])

    @staticmethod
    def backward(ctx, by_exp, by_sin):
        x, e = ctx.saved_tensors
        return by_exp * e + by_sin * x.cos()

    @staticmethod
    def jvp(ctx, tangent):
        x, e = ctx.saved_tensors
        return tangent * e, tangent * x.cos()


class Doubled(tg.autograd.Function):
    """Doubles its input in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 2


class Second(tg.autograd.Function):
    """Tells what jvp got for an input without a tangent."""

    seen = []

    @staticmethod
    def forward(ctx, x, y, materialize):
        ctx.set_materialize_grads(materialize)
        return x * 1

    @staticmethod
    def jvp(ctx, tangent, other, _):
        Second.seen.append(other)
        return tangent


def product(f, v=V):
    return func.jvp(f, (X,), (v,))[1]


def test_a_function_has_the_tangents_that_its_jvp_gives():
    close(product(lambda x: Scaled.apply(x, 2.0)), 2 * X.exp() * V)
    close(product(Two.apply), (X.exp() * V, X.cos() * V))
    close(product(lambda x: Two.apply(x)[0] * x), X.exp() * (1 + X) * V)


def test_what_a_function_kept_is_differentiated_backward():
    want = 2 * X.exp() * V
    close(func.grad(lambda x: func.jvp(lambda y: Scaled.apply(y, 2.0), (x,), (V,))[1].sum())(X), want)


def test_a_function_with_a_setup_context_is_differentiated_twice():
    f = lambda x: (Two.apply(x)[0] * Two.apply(x)[1]).sum()
    g = lambda x: (x.exp() * x.sin()).sum()
    want = product(func.grad(g))
    close(product(func.grad(f)), want)
    close(func.grad(lambda x: func.jvp(f, (x,), (V,))[1])(X), want)
    close(product(lambda x: func.jvp(f, (x,), (V,))[1]), (want * V).sum())


def test_a_function_that_takes_the_ctx_is_refused_where_levels_nest():
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        product(lambda x: func.jvp(lambda y: Scaled.apply(y, 2.0), (x,), (V,))[1])


def test_a_function_that_writes_in_place_writes_the_tangent():
    def f(x):
        y = x * 1
        Doubled.apply(y)
        return y

    close(product(f), V * 2)


def test_missing_tangents_are_zeros_unless_the_function_asked_for_none():
    for materialize in (True, False):
        product(lambda x, m=materialize: Second.apply(x, X, m))
    assert Second.seen[0].tolist() == [0, 0, 0] and Second.seen[1] is None


class NoRule(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1


class TooMany(NoRule):
    @staticmethod
    def jvp(ctx, tangent):
        return tangent, tangent


class Short(NoRule):
    @staticmethod
    def jvp(ctx, tangent):
        return tangent[:1]


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (NoRule, NotImplementedError, "You must implement the jvp function"),
        (TooMany, RuntimeError, "expected 1 but got 2"),
        (Short, RuntimeError, "forward gradient of shape"),
    ],
)
def test_bad_rules_are_refused(function, error, words):
    with pytest.raises(error, match=words):
        product(function.apply)


# ---- custom ops ----------------------------------------------------------------------------------------------------


@pytest.fixture
def cube():
    @library.custom_op("jvptest::cube", mutates_args=())
    def cube(x: tg.Tensor, k: float) -> tg.Tensor:
        return tg.from_numpy(x.numpy() ** 3 * k)

    yield cube
    library.undefine("jvptest::cube")


def setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.k = inputs[1]


def test_a_custom_op_without_rules_says_how_to_give_one(cube):
    with pytest.raises(NotImplementedError, match="register_jvp"):
        product(lambda x: cube(x, 2.0))


def test_tangents_of_a_custom_op_follow_from_its_backward(cube):
    cube.register_autograd(lambda ctx, g: (g * 3 * ctx.saved_tensors[0] ** 2 * ctx.k, None), setup_context=setup)
    close(product(lambda x: cube(x, 2.0)), 6 * X**2 * V)


def test_a_backward_that_is_not_differentiable_gives_no_zeros(cube):
    def backward(ctx, g):
        return tg.from_numpy(g.detach().numpy() * 3 * ctx.saved_tensors[0].detach().numpy() ** 2 * ctx.k), None

    cube.register_autograd(backward, setup_context=setup)
    with pytest.raises(RuntimeError, match="register_jvp"):
        product(lambda x: cube(x, 2.0))


def test_a_custom_op_has_the_tangents_that_its_jvp_gives(cube):
    library.register_jvp(
        "jvptest::cube", lambda ctx, t, _: 3 * ctx.saved_tensors[0] ** 2 * t * ctx.k, setup_context=setup
    )
    close(product(lambda x: cube(x, 2.0)), 6 * X**2 * V)
    close(product(lambda x: func.jvp(lambda y: cube(y, 2.0), (x,), (V,))[1]), 12 * X * V * V)
    with pytest.raises(RuntimeError, match="there is a forward-mode rule already"):
        cube.register_jvp(lambda ctx, t, _: t)


class Kept(Two):
    """As `Two`, whose jvp asks for what was kept by its other name."""

    @staticmethod
    def jvp(ctx, tangent):
        x, e = ctx.saved_for_forward
        return tangent * e, tangent * x.cos()


class KeptByForward(Scaled):
    """As `Scaled`, whose jvp asks for what was kept by its other name."""

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * ctx.saved_for_forward[0]


@pytest.mark.parametrize(
    ("kept", "plain"),
    [(Kept.apply, Two.apply), (lambda x: KeptByForward.apply(x, 2.0), lambda x: Scaled.apply(x, 2.0))],
)
def test_what_is_kept_for_jvp_has_two_names(kept, plain):
    close(func.jvp(kept, (X,), (V,)), func.jvp(plain, (X,), (V,)))
