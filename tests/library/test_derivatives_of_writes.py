"""Derivatives of ops that write to their arguments."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library
from tinygrad_ext.autograd import gradcheck, gradgradcheck


def op_of(text, fn, mutates=(), name="t::f"):
    return library.custom_op(name, fn, mutates_args=mutates, schema=text)


def double(*shape):
    return tg.randn(*shape, dtype=tg.float64, requires_grad=True)


def make_scale():
    """x *= k, through NumPy."""

    def scale(x, k):
        x.numpy()[...] *= k

    f = op_of("(Tensor(a!) x, float k) -> ()", scale, ("x",), "t::scale_")

    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        assert output is None

    f.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=setup_context)
    return f


def in_place(f, *more):
    def run(x):
        y = x.clone()
        f(y, *more)
        return y

    return run


def test_an_in_place_op_has_a_derivative():
    f = make_scale()
    assert gradcheck(in_place(f, 3.0), (double(3),)) and gradgradcheck(in_place(f, 3.0), (double(3),))
    y = double(2) * 1
    f(y, 2.0)
    assert y.grad_fn.name() == "ScaleBackward0" and y._version == 1


def test_an_in_place_op_on_a_view_reaches_the_base():
    f = make_scale()

    def run(x):
        y = x.clone()
        f(y[1:], 3.0)
        return y

    assert gradcheck(run, (double(3),)) and gradgradcheck(run, (double(3),))


def test_an_in_place_op_that_returns_its_argument():
    f = op_of("(Tensor(a!) x) -> Tensor(a!)", lambda x: x.mul_(2), ("x",))
    f.register_autograd(lambda ctx, g: g * 2)
    assert gradcheck(lambda x: f(x.clone()), (double(3),))
    y = double(2).clone()
    assert f(y) is y


def test_an_out_op_has_a_derivative():
    def square(x, *, out):
        out.copy_(x * x)
        return out

    f = op_of("(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", square, ("out",), "t::square.out")

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        assert output is keyword_only_inputs["out"]
        ctx.save_for_backward(inputs[0])

    f.register_autograd(lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=setup_context)
    run = lambda x: f(x, out=tg.empty(x.shape, dtype=x.dtype))
    assert gradcheck(run, (double(3),)) and gradgradcheck(run, (double(3),))
    x, old = double(2), double(2).exp()
    f(x, out=old).sum().backward()  # what `out` came from is forgotten
    assert x.grad.allclose(2 * x)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        f(x, out=double(2))


def test_the_view_to_write_to_may_stand_anywhere():
    def add_to(x, y):
        y += x

    f = op_of("(Tensor x, Tensor(a!) y) -> ()", add_to, ("y",))
    f.register_autograd(lambda ctx, g: (g, g))

    def run(a, b):
        y = b.clone()
        f(a, y[1:])
        return y * y

    assert gradcheck(run, (double(2), double(3))) and gradgradcheck(run, (double(2), double(3)))


def test_out_may_be_a_view():
    def square(x, *, out):
        out.copy_(x * x)
        return out

    f = op_of("(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", square, ("out",))

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(inputs[0])

    f.register_autograd(lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=setup_context)

    def run(x, buffer):
        rows = buffer.clone()
        f(x, out=rows[1])
        return rows * 3

    assert gradcheck(run, (double(2), double(3, 2))) and gradgradcheck(run, (double(2), double(3, 2)))


def test_an_op_that_writes_to_two_and_returns_a_third():
    def swap(x, y):
        x[:], y[:] = y.clone(), x.clone()
        return x + y

    f = op_of("(Tensor(a!) x, Tensor(b!) y) -> Tensor", swap, ("x", "y"))
    f.register_autograd(lambda ctx, gx, gy, gsum: (gy + gsum, gx + gsum))

    def run(a, b):
        x, y = a.clone(), b.clone()
        return x, y, f(x, y)

    assert gradcheck(lambda a, b: _after(run(a, b)), (double(2), double(2)))
    x, y = double(2).clone(), double(3)[1:]
    with pytest.raises(RuntimeError, match="leaf|is a view, and gradients are recorded"):
        f(x, y)


def _after(outputs):
    x, y, s = outputs
    return x * 2 + y * 3 + s * 5


def test_a_write_without_backward_is_no_silent_zero():
    f = op_of("(Tensor(a!) x) -> ()", lambda x: x.zero_().tolist().clear(), ("x",))
    y = double(2) * 1
    f(y)
    with pytest.raises(RuntimeError, match="Trying to backward through t::f but no autograd formula"):
        y.sum().backward()


def test_a_saved_tensor_that_is_written_to_is_noticed():
    f, x = make_scale(), double(2)
    y = x * 1
    z = y.exp() * y
    f(y, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
