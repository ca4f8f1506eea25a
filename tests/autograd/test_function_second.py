"""Second derivatives of Functions: right, or refused; never silently wrong."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad, gradgradcheck
from tinygrad_ext.autograd.function import once_differentiable


def point(*values):
    return tg.tensor(list(values) or [1.0, 2.0], dtype=tg.float64, requires_grad=True)


def function(forward, backward, **body):
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward), **body})


# ---- tensors made inside forward


def keep_saved(ctx, h):
    ctx.save_for_backward(h)


def keep_attribute(ctx, h):
    ctx.h = h


def kept(ctx):
    return ctx.saved_tensors[0] if ctx.saved_tensors else ctx.h


def square_of(make_intermediate, keep=keep_saved):
    """A Function whose backward multiplies by a tensor that forward made and kept."""

    def forward(ctx, x):
        h = make_intermediate(x)
        keep(ctx, h)
        return h * x

    return function(forward, lambda ctx, g: g * kept(ctx))


def fill(x):
    h = tg.empty(2, dtype=tg.float64)
    h.copy_(x)
    return h


def fill_row(x):
    h = tg.zeros(2, 2, dtype=tg.float64)
    h[0].copy_(x)
    return h[0]


def fill_base(x):
    h = tg.zeros(2, 2, dtype=tg.float64)
    h[0] = x
    return h.sum(0)


def out_form(x):
    h = tg.empty(2, dtype=tg.float64)
    tg.mul(x, 2, out=h)
    return h


class Inner(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


DEPENDENT = {
    "op": lambda x: x * 2,
    "chain": lambda x: tg.cat([x.exp(), x]).double()[:2] + 1,
    "copy_": fill,
    "copy_ into a view": fill_row,
    "setitem": fill_base,
    "out=": out_form,
    "in place": lambda x: tg.ones(2, dtype=tg.float64).mul_(x),
    "view of the input": lambda x: x.view(2),
    "inner function": Inner.apply,
    "mixed with a constant": lambda x: tg.where(x > 0, x, tg.zeros_like(x)),
    "NumPy": lambda x: tg.from_numpy(x.detach().numpy() * 2),
    "a copy of NumPy's": lambda x: tg.tensor(x.detach().numpy() * 2),
    "no_grad": lambda x: tg.no_grad()(lambda: x * 2)(),
}


@pytest.mark.parametrize("keep", [keep_saved, keep_attribute])
@pytest.mark.parametrize("make_intermediate", DEPENDENT.values(), ids=DEPENDENT)
def test_second_derivative_through_an_intermediate_is_refused(make_intermediate, keep):
    """PyTorch takes the intermediate for a constant and returns a wrong number."""
    made = square_of(make_intermediate, keep)
    x = point()
    made.apply(x).sum().backward()  # the first derivative needs no more than the value
    for use in (lambda g: grad(g.sum(), x), lambda g: g.sum().backward()):
        (first,) = grad(made.apply(x).sum(), x, create_graph=True)
        assert first.requires_grad
        with pytest.raises(RuntimeError, match="second derivative through it is not known"):
            use(first)


def test_the_refusal_names_the_tensor_and_the_line():
    def forward(ctx, x, w):
        ctx.save_for_backward(x, x * w)  # this line
        return x * w

    made = function(forward, lambda ctx, g: (g * ctx.saved_tensors[1], None))
    x = point()
    (first,) = grad(made.apply(x, 3.0).sum(), x, create_graph=True)
    line = forward.__code__.co_firstlineno + 1
    with pytest.raises(
        RuntimeError, match=rf"MadeBackward: saved tensor number 1 .*test_function_second.py:{line} in fo"
    ):
        grad(first.sum(), x)
    made = square_of(lambda x: x * 2, keep_attribute)
    (first,) = grad(made.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="attribute 'h' of ctx"):
        grad(first.sum(), x)


CONSTANT = {
    "random mask": lambda x: (tg.rand(2) > 0.5).double(),
    "comparison": lambda x: (x > 1.5).double(),
    "like": tg.ones_like,
    "new": lambda x: x.new_ones(2),
    "detached": lambda x: (x * 2).detach(),
    "shape": lambda x: tg.arange(x.numel()).double(),
    "sign of a detached input": lambda x: x.detach().sign(),
}


@pytest.mark.parametrize("keep", [keep_saved, keep_attribute])
@pytest.mark.parametrize("make_constant", CONSTANT.values(), ids=CONSTANT)
def test_what_does_not_depend_on_the_inputs_is_a_constant(make_constant, keep):
    def forward(ctx, x):
        h = make_constant(x)
        keep(ctx, h)
        return h * x.detach()

    made = function(forward, lambda ctx, g: g * kept(ctx))
    x, w = point(), point()
    (first,) = grad(made.apply(x * w).sum(), x, create_graph=True)
    assert grad(first.sum(), w, allow_unused=True)[0] is not None


def test_only_a_path_through_the_intermediate_is_refused():
    made = square_of(lambda x: x * 2)
    x, seed = point(), point(1.0, 1.0)
    (first,) = grad(made.apply(x), x, seed, create_graph=True)
    assert grad(first.sum(), seed)[0].tolist() == [2.0, 4.0]  # linear in the seed, as jvp by double vjp needs
    (first,) = grad((made.apply(x) * 0 + x * x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="not known"):
        first.sum().backward()


def test_an_intermediate_returned_as_output_has_its_derivative():
    """The pattern of PyTorch's tutorial: the intermediate is an output, and backward takes its gradient too."""

    class Cube(Function):
        @staticmethod
        def forward(x):
            return x**3, 3 * x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output[1])

        @staticmethod
        def backward(ctx, g, g_dx):
            x, dx = ctx.saved_tensors
            return g * dx + g_dx * 6 * x

    x = point()
    assert gradgradcheck(lambda x: Cube.apply(x)[0], (x,))
    y = Cube.apply(x)[0].sum()
    for value in ([3.0, 12.0], [6.0, 12.0], [6.0, 6.0]):
        (y,) = grad(y.sum(), x, create_graph=True)
        assert y.tolist() == value


def test_an_intermediate_made_with_grad_mode_on_has_its_own_graph():
    def forward(ctx, x):
        with tg.enable_grad():
            h = x * x
        ctx.save_for_backward(h)
        return h * x

    made = function(forward, lambda ctx, g: 3 * g * ctx.saved_tensors[0])
    x = point()
    (first,) = grad(made.apply(x).sum(), x, create_graph=True)
    assert grad(first.sum(), x)[0].tolist() == [6.0, 12.0]


def test_an_output_is_no_intermediate_for_the_next_function():
    plain = function(lambda ctx, x: (ctx.mark_non_differentiable(y := x * 2), y)[1], lambda ctx, g: g)
    x = point()
    h = plain.apply(x)
    made = function(
        lambda ctx, x, h: ctx.save_for_backward(h * 2) or x * h * 2, lambda ctx, g: (g * g * ctx.saved_tensors[0], None)
    )
    (first,) = grad(made.apply(x, h), x, seed := point(1.0, 1.0), create_graph=True)
    assert grad(first.sum(), (x, seed), allow_unused=True)[0] is None


# ---- once_differentiable


def once(backward=lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g):
    return function(lambda ctx, x: ctx.save_for_backward(x) or x**3, once_differentiable(backward))


def test_once_differentiable_refuses_the_second_derivative():
    """PyTorch drops the term without a word when the derivative is taken with grad(): 12 instead of 48 here."""
    x = point(2.0)
    for use in (lambda g: grad((g * x).sum(), x), lambda g: (g * x).sum().backward(), lambda g: grad(g.sum(), x)):
        y = once().apply(x)
        (first,) = grad((y * x).sum(), x, create_graph=True)
        assert first.item() == 32.0
        with pytest.raises(
            RuntimeError, match="trying to differentiate twice a function that was marked with @once_diff"
        ):
            use(first)


def test_once_differentiable_refuses_where_the_incoming_gradient_needs_none():
    """PyTorch says "does not require grad and does not have a grad_fn" here."""
    x = point(2.0)
    (first,) = grad(once().apply(x).sum(), x, create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_once_differentiable_refuses_towards_the_incoming_gradient():
    x, seed = point(2.0), point(1.0)
    (first,) = grad(once().apply(x), x, seed, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(first, seed)


@pytest.mark.parametrize("shape", [lambda g: (g, None), lambda g: {"x": g}], ids=["tuple", "dict"])
def test_once_differentiable_takes_every_form_of_row(shape):
    made = function(lambda ctx, x, n: x * n, once_differentiable(lambda ctx, g: shape(g * 3)))
    x = point(2.0)
    made.apply(x, 3).backward()
    assert x.grad.item() == 3.0
    (first,) = grad(made.apply(x, 3), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_once_differentiable_in_legacy_style():
    class Old(Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * x

        @once_differentiable
        def backward(self, g):
            return 2 * g * self.saved_tensors[0]

    x = point(2.0)
    (first,) = grad(Old()(x), x, create_graph=True)
    assert first.item() == 4.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(first, x)


def test_modes_survive_an_exception_in_a_once_differentiable_backward():
    x = point(2.0)
    with pytest.raises(ZeroDivisionError):
        grad(once(lambda ctx, g: 1 / 0).apply(x), x, create_graph=True)
    assert tg.is_grad_enabled()
    (x * x).backward()
    assert x.grad.item() == 4.0
