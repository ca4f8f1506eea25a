"""grad, vjp and jacrev: what they return, who else may differentiate it, and what they refuse."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import grad, grad_and_value, jacrev, vjp, vmap


def cube(x):
    return (x * x * x).sum()


@pytest.fixture
def x():
    return tg.tensor([1.0, -2.0, 0.5])


def test_a_gradient_has_no_history_where_nobody_else_differentiates(x):
    got = grad(cube)(x)
    assert tg.equal(got, 3 * x * x) and not got.requires_grad and not x.requires_grad and x.grad is None


def test_a_gradient_can_be_differentiated_by_what_required_grad_before(x):
    x.requires_grad_()
    got = grad(cube)(x)
    (second,) = tg.autograd.grad(got.sum(), x)
    assert tg.equal(second, 6 * x.detach())


def test_a_gradient_can_be_differentiated_by_what_the_function_closes_over(x):
    w = tg.tensor(2.0, requires_grad=True)
    got = grad(lambda x: (w * x * x).sum())(x)
    (by_w,) = tg.autograd.grad(got.sum(), w)
    assert by_w.item() == (2 * x).sum().item() and w.grad is None


def test_under_no_grad_there_is_a_gradient_without_a_history(x):
    x.requires_grad_()
    with tg.no_grad():
        got = grad(cube)(x)
    assert tg.equal(got, 3 * x.detach() ** 2) and not got.requires_grad


def test_inner_and_outer_derivatives_are_not_confused():
    # d/dx (x * d/dy (x + y)) = 1
    assert grad(lambda x: x * grad(lambda y: x + y)(tg.tensor(1.0)))(tg.tensor(1.0)).item() == 1
    # the same variable at both levels: d/dx (x * d/dy (x * y) at y = x) = d/dx (x * x) = 2 x
    assert grad(lambda x: x * grad(lambda y: x * y)(x))(tg.tensor(3.0)).item() == 6


def test_no_grad_inside_holds_for_the_derivative_that_it_is_inside_of():
    def f(x):
        with tg.no_grad():
            held = x * x
        return x * x - held

    assert grad(f)(tg.tensor(3.0)).item() == 6

    def g(x):
        with tg.no_grad():
            slope = grad(lambda y: y * y * y)(x)
        return x * slope

    assert grad(g)(tg.tensor(2.0)).item() == 12


@pytest.mark.parametrize("depth, expected", [(1, 4 * 8.0), (2, 12 * 4.0), (3, 24 * 2.0), (4, 24.0), (5, 0.0)])
def test_gradients_of_gradients(depth, expected):
    f = lambda x: x * x * x * x
    for _ in range(depth):
        f = grad(f)
    assert f(tg.tensor(2.0)).item() == expected


def test_argnums_and_containers(x):
    def f(a, b, scale=1.0):
        return (a["u"] * b[0]).sum() * scale

    by_a, by_b = grad(f, argnums=(0, 1))({"u": x}, (x + 1, x), scale=2.0)
    assert tg.equal(by_a["u"], 2 * (x + 1)) and tg.equal(by_b[0], 2 * x) and tg.equal(by_b[1], tg.zeros(3))
    assert tg.equal(grad(f, argnums=-1)({"u": x}, (x,))[0], x)


def test_values_and_others_come_back_without_a_history(x):
    got, (value, others) = grad_and_value(lambda x: (cube(x), {"twice": 2 * x}), has_aux=True)(x)
    assert value.item() == cube(x).item() and not value.requires_grad
    assert tg.equal(others["twice"], 2 * x) and not others["twice"].requires_grad
    got, others = grad(lambda x: (cube(x), "words"), has_aux=True)(x)
    assert others == "words"


def test_vjp_can_be_called_again_and_inside_vmap(x):
    output, back = vjp(lambda x: (x.sin(), {"s": x.sum()}), x)
    assert not output[0].requires_grad
    ones = tg.ones(3), {"s": tg.tensor(2.0)}
    assert tg.equal(back(ones)[0], x.cos() + 2) and tg.equal(back(*ones)[0], x.cos() + 2)
    rows = vmap(lambda v: back((v, {"s": tg.tensor(0.0)}))[0])(tg.eye(3))
    assert tg.equal(rows, tg.diag_embed(x.cos()))


def test_the_product_of_a_vjp_is_differentiable_by_the_cotangent(x):
    v = tg.ones(3, requires_grad=True)
    _, back = vjp(tg.sin, x)
    (got,) = tg.autograd.grad(back(v)[0].sum(), v)
    assert tg.equal(got, x.cos())


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 100])
def test_jacrev_in_chunks_of_any_size(x, chunk_size):
    inputs = tg.stack([x, x + 1])
    got = jacrev(lambda x: {"m": x.exp(), "s": (x * x).sum()}, chunk_size=chunk_size)(inputs)
    assert tg.equal(got["s"], 2 * inputs)
    assert got["m"].shape == (2, 3, 2, 3)
    assert tg.equal(got["m"].reshape(6, 6), tg.diag_embed(inputs.exp().flatten()))


def test_jacrev_of_no_outputs_and_by_several_arguments(x):
    assert jacrev(lambda x: x[:0])(x).shape == (0, 3)
    by_a, by_b = jacrev(lambda a, b: a * b, argnums=(0, 1))(x, x + 1)
    assert tg.equal(by_a, tg.diag_embed(x + 1)) and tg.equal(by_b, tg.diag_embed(x))


def test_jacobians_of_each_sample(x):
    inputs = tg.stack([x, x + 1, x - 1, x * 2])
    got = vmap(jacrev(tg.sin))(inputs)
    assert tg.equal(got, tg.diag_embed(inputs.cos()))
    # and twice
    got = vmap(jacrev(jacrev(lambda x: (x * x * x).sum())))(inputs)
    assert tg.equal(got, tg.diag_embed(6 * inputs))


def test_each_sample_has_a_gradient_by_what_all_share(x):
    inputs = tg.rand(4, 3)
    got = vmap(grad(lambda w, row: (w * row).sin().sum()), (None, 0))(x, inputs)
    assert tg.allclose(got, (x * inputs).cos() * inputs)


def test_hooks_and_saved_tensor_hooks_are_called_inside(x):
    seen = []

    def f(x):
        y = x * x
        y.register_hook(lambda g: seen.append(g.tolist()))
        return y.sum()

    grad(f)(x)
    assert seen == [[1.0, 1.0, 1.0]]
    with tg.autograd.graph.saved_tensors_hooks(lambda t: seen.append("packed") or t, lambda t: t):
        assert tg.equal(grad(cube)(x), 3 * x * x)
    assert "packed" in seen


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: grad(tg.sin)(x), RuntimeError, "scalar tensor, got tensor with 1 dims"),
        (lambda x: grad(lambda x: 3.0)(x), RuntimeError, "to return a Tensor, got type float"),
        (lambda x: grad(lambda x: x.sum().to(tg.int64))(x), RuntimeError, "floating point"),
        (lambda x: grad(cube, argnums=1)(x), RuntimeError, "Got argnum=1, but only 1 positional inputs"),
        (lambda x: grad(cube, argnums=(0, 0))(x), RuntimeError, "unique"),
        (lambda x: grad(cube, argnums=())(x), RuntimeError, "non-empty"),
        (lambda x: grad(cube, argnums="0")(x), RuntimeError, "argnums must be int or"),
        (lambda x: grad(cube)(3.0), ValueError, "hold tensors, got float"),
        (lambda x: grad(cube)(tg.tensor([1, 2])), RuntimeError, "floating point"),
        (lambda x: grad(cube, has_aux=True)(x), RuntimeError, "should be a tuple"),
        (lambda x: vjp(tg.sin, x)[1](tg.ones(2)), RuntimeError, r"output's shape \[3\], got \[2\]"),
        (lambda x: vjp(tg.sin, x)[1]({"a": x}), RuntimeError, "structure of cotangents"),
        (lambda x: vjp(lambda x: "no", x), RuntimeError, "return only tensors"),
        (lambda x: jacrev(tg.sin, chunk_size=0), ValueError, "greater than 0"),
        (lambda x: jacrev(lambda x: 1)(x), RuntimeError, "only tensors"),
    ],
)
def test_what_is_wrong_is_told(x, call, error, words):
    with pytest.raises(error, match=words):
        call(x)


def test_a_gradient_by_an_integer_is_refused_before_the_function_runs():
    with pytest.raises(RuntimeError, match="int64"):
        grad(lambda x: pytest.fail("ran"))(tg.tensor(1))


def test_rows_of_a_jacobian_promote_as_the_program_does():
    x = tg.rand(2, 3, requires_grad=True)
    rows = tg.autograd.grad(x.max(), x, tg.tensor([1.0, 2.0]), is_grads_batched=True)[0]
    assert rows.dtype == tg.float32 and rows.sum().item() == 3


def test_a_vjp_made_under_no_grad_may_be_differentiated_later(x):
    x.requires_grad_()
    with tg.no_grad():
        output, back = vjp(lambda x: x**2, x)
        held = back(tg.ones(3))[0]
    assert not output.requires_grad and not held.requires_grad
    (slope,) = back(tg.ones(3))
    assert tg.autograd.grad(slope.sum(), x)[0].tolist() == [2.0, 2.0, 2.0]
