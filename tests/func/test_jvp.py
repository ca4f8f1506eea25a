"""Forward mode: values and tangents in one pass, alone and inside other transforms."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func, plugins

X = tg.tensor([0.3, -0.7, 1.2], dtype=tg.float64)
V = tg.tensor([1.0, 2.0, -1.0], dtype=tg.float64)


def wave(x):
    return (x.sin() * x.pow(2)).sum() * x[0]


def close(got, want):
    tg.testing.assert_close(got, want)


def test_a_product_with_the_jacobian_is_what_reverse_mode_says():
    def f(x):
        return tg.softmax(x * x.sum(), 0).exp() / (1 + x.square())

    value, product = func.jvp(f, (X,), (V,))
    close(value, f(X))
    close(product, func.jacrev(f)(X) @ V)


def test_memory_made_inside_may_be_written_to():
    def f(x):
        out = tg.zeros(3, dtype=tg.float64)
        out[0] = x[1] * x[2]
        out[1:] = x[:2].exp()
        out *= 2
        return out

    want = tg.stack([X[1] * V[2] + X[2] * V[1], X[0].exp() * V[0], X[1].exp() * V[1]]) * 2
    close(func.jvp(f, (X,), (V,)), (f(X), want))


def test_writing_a_view_writes_the_tangent_of_what_it_shows_and_of_nothing_else():
    def f(x):
        y = x + 0
        part = y[1:]
        part.mul_(x[1:])
        z = x.clone()
        z[0] = 7.0
        return y, z, x

    _, (y, z, x) = func.jvp(f, (X,), (V,))
    close(y, tg.stack([V[0], 2 * X[1] * V[1], 2 * X[2] * V[2]]))
    close(z, tg.stack([V[0] * 0, V[1], V[2]]))
    close(x, V)


def test_a_tangent_is_not_written_into_what_was_made_outside():
    outside = tg.zeros(3, dtype=tg.float64)
    with pytest.raises(RuntimeError, match="captured Tensor"):
        func.jvp(lambda x: outside.copy_(x), (X,), (V,))
    assert outside.tolist() == [0, 0, 0]


def test_tangents_of_the_user_are_left_alone():
    v = V.clone()
    func.jvp(lambda x: x.clone().mul_(3), (X,), (v,))
    func.jvp(lambda x: (x + 1).mul_(3), (X,), (v,))
    close(v, V)


def test_the_program_may_look_at_primals():
    def f(x):
        return x.exp() if x[0] > 0 and float(x[2]) > 1 and len(x) == 3 else x

    close(func.jvp(f, (X,), (V,))[1], X.exp() * V)


def test_second_derivatives_are_the_same_in_all_four_ways():
    want = func.jacrev(func.grad(wave))(X) @ V
    close(func.jvp(func.grad(wave), (X,), (V,))[1], want)
    close(func.grad(lambda x: func.jvp(wave, (x,), (V,))[1])(X), want)
    rows = [func.jvp(lambda x, e=e: func.jvp(wave, (x,), (e,))[1], (X,), (V,))[1] for e in tg.eye(3, dtype=tg.float64)]
    close(tg.stack(rows), want)


def test_derivatives_of_two_passes_are_not_confused():
    one = tg.tensor(1.0)

    def inner(x):
        return func.jvp(lambda y: x * y, (tg.tensor(2.0),), (one,))[1]

    assert func.jvp(lambda x: x * inner(x), (tg.tensor(3.0),), (one,))[1].item() == 6


def test_forward_mode_goes_inside_vmap_and_around_it():
    rows = func.vmap(lambda t: func.jvp(func.grad(wave), (X,), (t,))[1])(tg.eye(3, dtype=tg.float64))
    close(rows, func.jacrev(func.grad(wave))(X).T)
    close(func.vmap(lambda a, b: func.jvp(tg.sin, (a,), (b,))[1])(X, V), X.cos() * V)
    close(func.jvp(func.vmap(func.grad(lambda a: a.exp() * a)), (X,), (V,))[1], X.exp() * (X + 2) * V)
    close(func.grad(lambda x: func.jvp(func.vmap(tg.exp), (x,), (V,))[1].sum())(X), X.exp() * V)
    f = lambda x: x.sin() * x.sum()
    close(func.jvp(func.jacrev(f), (X,), (V,))[1], func.jacrev(lambda x: func.jvp(f, (x,), (V,))[1])(X))


def test_parameters_closed_over_get_gradients_of_tangents():
    weight = tg.tensor([[1.0, 2.0, 3.0]], dtype=tg.float64, requires_grad=True)
    _, product = func.jvp(lambda x: (weight @ x.exp()).square(), (X,), (V,))
    product.sum().backward()
    again = weight.detach().requires_grad_()
    e = X.exp()
    (2 * (again @ e) * (again @ (e * V))).sum().backward()
    close(weight.grad, again.grad)
    assert not func.jvp(lambda x: x.exp(), (X,), (V,))[1].requires_grad


def test_linearize_multiplies_with_the_jacobian_any_number_of_times():
    ran = []

    def f(x):
        ran.append(1)
        return x.exp() * x[0], x.sum()

    output, push = func.linearize(f, X)
    close(output, (X.exp() * X[0], X.sum()))
    for v in (V, 2 * V):
        close(push(v), (X.exp() * (v * X[0] + v[0]), v.sum()))
    assert len(ran) == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: func.jvp(tg.sin, X, V), RuntimeError, "Expected primals to be a tuple"),
        (lambda: func.jvp(tg.sin, (X,), V), RuntimeError, "same python structure"),
        (lambda: func.jvp(tg.sin, (), ()), RuntimeError, "at least one Tensor"),
        (lambda: func.jvp(tg.sin, (1.0,), (V,)), RuntimeError, "only contain Tensors, got unsupported type float"),
        (lambda: func.jvp(lambda x: 1, (X,), (V,)), RuntimeError, "return only tensors, got unsupported type int"),
        (lambda: func.jvp(lambda x: (), (X,), (V,)), RuntimeError, "non-empty output"),
        (lambda: func.jvp(tg.sin, (X,), (V[:2],)), RuntimeError, "different size"),
        (lambda: func.jvp(tg.sin, (X.long(),), (V,)), ValueError, "Expected primal to be floating point or complex"),
        (lambda: func.jvp(lambda x: V, (X,), (V,), strict=True), RuntimeError, "independent of the inputs"),
        (lambda: func.jvp(tg.sin, (X,), (V,), has_aux=True), RuntimeError, "should be a tuple"),
        (lambda: func.linearize(tg.sin, X)[1](V, V), RuntimeError, "same argspec"),
        (lambda: func.linearize(tg.sin, X)[1](V[:2]), RuntimeError, "tangent:0 with shape"),
        (lambda: func.jvp(lambda x: tg.sin(x, out=tg.zeros(3)), (X,), (V,)), NotImplementedError, "out= function"),
    ],
)
def test_bad_input_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_others_of_the_results_come_without_tangents():
    value, product, aux = func.jvp(lambda x: (x.sin(), x.cos()), (X,), (V,), has_aux=True)
    close((value, product, aux), (X.sin(), X.cos() * V, X.cos()))


def test_no_grad_does_not_stop_forward_mode():
    with tg.no_grad():
        close(func.jvp(tg.exp, (X,), (V,))[1], X.exp() * V)
    close(func.jvp(lambda x: x.detach() * x, (X,), (V,))[1], X * V)


def test_complex_products_are_products_of_complex_numbers():
    z, w = tg.complex(X, V), tg.complex(V, X)
    close(func.jvp(lambda z: z * z / (z + 1), (z,), (w,))[1], w * (z * z + 2 * z) / ((z + 1) * (z + 1)))


@pytest.mark.parametrize("name", ["T", "mT", "H", "mH", "real"])
def test_properties_that_are_computed_have_a_derivative(name):
    x, v = tg.rand(2, 3), tg.rand(2, 3)
    value, slope = func.jvp(lambda x: getattr(x, name), (x,), (v,))
    assert tg.equal(value, getattr(x, name)) and tg.equal(slope, getattr(v, name))
    value, slope = func.jvp(lambda x: getattr(x * 2, name) ** 2, (x,), (v,))
    assert tg.allclose(slope, getattr(8 * x * v, name))


def test_what_does_not_hang_on_the_inputs_has_a_tangent_of_plain_zeros():
    value, slope = func.jvp(lambda x: tg.ones(2), (tg.rand(3),), (tg.rand(3),))
    assert slope.tolist() == [0, 0] and type(slope) is tg.Tensor


def test_no_value_of_a_function_is_compared_with_none(monkeypatch):
    asked = []
    monkeypatch.setattr(plugins, "why_not_handled", lambda types: asked.append(types) or "")
    func.hessian(lambda x: (x * x).sum())(tg.ones(2))
    func.jvp(tg.sin, (tg.ones(2),), (tg.ones(2),))
    assert not asked  # words for an error that nobody sees
