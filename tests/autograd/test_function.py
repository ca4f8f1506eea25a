"""autograd.Function: three styles, binding, refusals, memory."""

import gc
import threading
import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad, gradcheck, gradgradcheck
from tinygrad_ext.autograd.function import once_differentiable


def point(*values):
    return tg.tensor(list(values), dtype=tg.float64, requires_grad=True)


class Affine(Function):
    """x * w + b, ctx style."""

    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w)
        return x * w if b is None else x * w + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x, g if ctx.needs_input_grad[2] else None


class AffineSeparate(Function):
    """The same with setup_context, and a dict of gradients."""

    @staticmethod
    def forward(x, w, *, b=None):
        return x * w if b is None else x * w + b

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, b = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return {"x": g * w, "w": g * x, "b": g if ctx.needs_input_grad[2] else None}


class AffineLegacy(Function):
    """The same on instances."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def forward(self, x, w, b=None):
        self.save_for_backward(x, w)
        return (x * w if b is None else x * w + b) * self.scale

    def backward(self, g):
        x, w = self.saved_tensors
        g = g * self.scale
        return g * w, g * x, g if self.needs_input_grad[2] else None


STYLES = {
    "ctx": Affine.apply,
    "setup_context": lambda x, w, b=None: AffineSeparate.apply(x, w, b=b),
    "legacy": AffineLegacy(2.0),
}


@pytest.mark.parametrize("f", STYLES.values(), ids=STYLES)
def test_each_style_differentiates_to_second_order(f):
    inputs = (point(1.0, -2.0), point(0.5, 3.0), point(1.0, 1.0))
    assert gradcheck(f, inputs) and gradgradcheck(f, inputs)
    assert gradcheck(f, inputs[:2])


def test_one_legacy_instance_serves_many_calls():
    f = AffineLegacy(1.0)
    x, w = point(2.0), point(3.0)
    a, b = f(x, w), f(w, w)
    assert [g.item() for g in grad(a * b, (x, w))] == [27.0, 2.0 * 9.0 + 6.0 * 6.0]


def test_keywords_and_defaults_bind():
    x, w, b = point(2.0), point(3.0), point(4.0)
    assert Affine.apply(x, w=w, b=b).item() == 10.0
    assert grad(Affine.apply(x, b=b, w=w), b)[0].item() == 1.0
    with pytest.raises(TypeError):
        Affine.apply(x, w, b, b)
    with pytest.raises(TypeError):
        Affine.apply(x, weight=w)


def test_the_node_is_the_ctx():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            Keep.ctx = ctx
            ctx.note = "kept"
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert ctx.note == "kept"
            return g * 2

    y = Keep.apply(point(1.0))
    assert y.grad_fn is Keep.ctx and y.grad_fn.name() == "KeepBackward"
    assert isinstance(y.grad_fn, Keep._backward_cls)
    y.sum().backward()


def test_materialize_grads():
    class Two(Function):
        @staticmethod
        def forward(ctx, x, keep):
            ctx.set_materialize_grads(keep)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            Two.seen = (a, b)
            return a if b is None else a + 2 * b, None

    x = point(1.0, 2.0)
    Two.apply(x, True)[0].sum().backward()
    assert Two.seen[1].tolist() == [0.0, 0.0]
    Two.apply(x, False)[0].sum().backward()
    assert Two.seen[1] is None


def make(forward=None, backward=None):
    """A Function from two bodies."""
    body = {"forward": staticmethod(forward or (lambda ctx, x, n=None: x * 1))}
    if backward is not None:
        body["backward"] = staticmethod(backward)
    return type("Made", (Function,), body)


@pytest.mark.parametrize(
    "made, error, fragment",
    [
        (make(backward=lambda ctx, g: ()), RuntimeError, r"incorrect number of gradients \(expected 2, got 0\)"),
        (make(backward=lambda ctx, g: (g, None, g)), RuntimeError, r"\(expected 2, got 3\)"),
        (make(backward=lambda ctx, g: (g, g)), RuntimeError, "gradient different than None at position 2"),
        (make(backward=lambda ctx, g: ([1.0], None)), RuntimeError, r"expected Variable or None \(got list\)"),
        (
            make(backward=lambda ctx, g: (tg.ones(7, dtype=tg.float64), None)),
            RuntimeError,
            "invalid gradient at index 0 - got .7. but expected shape compatible with .2.",
        ),
        (make(backward=lambda ctx, g: {"nobody": g}), RuntimeError, "no argument"),
        (make(), NotImplementedError, "either the backward or vjp"),
        (make(backward=lambda ctx, g: (g.mul_(2), None)), RuntimeError, "changed an incoming gradient in place"),
        (make(backward=lambda ctx, g: ((g * (1 + 2j)), None)), RuntimeError, "complex gradient"),
        (make(backward=lambda ctx, g: 1 / 0), ZeroDivisionError, "division"),
    ],
)
def test_wrong_gradients_are_named(made, error, fragment):
    x = point(1.0, 2.0)
    with pytest.raises(error, match=fragment):
        (made.apply(x) * 1).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_extra_trailing_nones_and_broadcast_gradients_are_accepted():
    x = point(1.0, 2.0)
    made = make(backward=lambda ctx, g: (tg.ones(3, 2, dtype=tg.float32), None, None, None))
    made.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and x.grad.dtype == tg.float64


@pytest.mark.parametrize(
    "forward, error, fragment",
    [
        (
            lambda ctx, x: ctx.save_for_backward([x]),
            TypeError,
            "can only save variables, but argument 0 is of type list",
        ),
        (lambda ctx, x: ctx.save_for_forward(3), AssertionError, "tensors"),
        (lambda ctx, x: ctx.mark_dirty(3) or x, RuntimeError, "mark_dirty takes tensors"),
        (lambda ctx, x: ctx.mark_dirty(x) or x * 2, RuntimeError, "marked as dirty but was not returned as output"),
        (lambda ctx, x: ctx.set_materialize_grads(1), TypeError, r"expected \(bool\)"),
        (lambda ctx, x: ctx.saved_tensors[0], IndexError, "range"),
        (lambda ctx, x: [x * 1], TypeError, "inside a list"),
        (lambda ctx, x: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_wrong_use_in_forward_is_refused(forward, error, fragment):
    with pytest.raises(error, match=fragment):
        make(forward, lambda ctx, g: g).apply(point(1.0) * 1)
    assert tg.is_grad_enabled()


def test_missing_forward():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Nothing.apply(point(1.0))


def test_tensors_in_lists_would_lose_their_gradient():
    """PyTorch gives no gradient here and says nothing."""
    with pytest.raises(TypeError, match="gradient would be lost"):
        make(lambda ctx, xs: xs[0] * 2).apply([point(1.0)])


def test_setup_context_must_return_nothing():
    """PyTorch ignores what setup_context returns."""

    class Returns(AffineSeparate):
        @staticmethod
        def setup_context(ctx, inputs, output):
            return 3

    with pytest.raises(TypeError, match="setup_context returned int"):
        Returns.apply(point(1.0), point(1.0))


def test_backward_and_vjp_exclude_each_other():
    made = make(backward=lambda ctx, g: g)
    made.vjp = staticmethod(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        made.apply(point(1.0)).sum().backward()


def test_vjp_is_a_name_for_backward():
    made = make()
    made.vjp = staticmethod(lambda ctx, g: (g * 5, None))
    x = point(1.0)
    made.apply(x).sum().backward()
    assert x.grad.item() == 5.0


def test_marked_dirty_returns_the_same_tensor():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    made = make(forward, lambda ctx, g: g * 3)
    x = point(2.0)
    y = x * 1
    version = y._version
    z = made.apply(y)
    assert z is y and y._version > version and y.grad_fn.name() == "MadeBackward"
    y.sum().backward()
    assert x.grad.item() == 3.0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        made.apply(point(1.0))


def test_a_returned_input_becomes_an_alias():
    made = make(lambda ctx, x: x, lambda ctx, g: g * 7)
    x = point(1.0)
    y = made.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.item() == 7.0


def test_a_view_made_in_forward_refuses_inplace():
    y = make(lambda ctx, x: x.view(-1), lambda ctx, g: g).apply(tg.ones(2, 2, requires_grad=True))
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        y.add_(1)


def test_non_differentiable_outputs_and_non_tensors_pass():
    def forward(ctx, x):
        indices = x > 0
        copy = x * 1
        ctx.mark_non_differentiable(copy)
        return x * 2, copy, indices, "text"

    made = make(forward, lambda ctx, g, a, b, c: g * 2)
    y, copy, indices, text = made.apply(point(1.0))
    assert y.requires_grad and not copy.requires_grad and not indices.requires_grad and text == "text"
    y.sum().backward()


def test_saved_tensors_are_checked_and_freed():
    made = make(lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], lambda ctx, g: 2 * g * ctx.saved_tensors[0])
    x = point(1.0) * 1
    y = made.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    z = made.apply(point(3.0))
    z.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        _ = z.grad_fn.saved_tensors
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.sum().backward()


def test_once_differentiable_refuses_the_second_derivative():
    """PyTorch drops the term without a word when the derivative is taken with grad()."""

    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x = point(2.0)
    (first,) = grad(Once.apply(x).sum(), x, create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(first.sum(), x)


def test_no_circles_through_ctx_attributes_and_saved_outputs():
    """In PyTorch an output kept as an attribute of ctx is a circle that only the collector frees."""
    made = make(lambda ctx, x: ctx.save_for_backward(y := x.exp()) or y, lambda ctx, g: g * ctx.saved_tensors[0])
    gc.collect()
    gc.disable()
    try:
        y = made.apply(point(1.0, 2.0))
        alive = weakref.ref(y)
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_a_hundred_thousand_functions_in_a_chain():
    made = make(backward=lambda ctx, g: (g, None))
    x = point(1.0)
    y = x
    for _ in range(100_000):
        y = made.apply(y)
    y.sum().backward()
    assert x.grad.item() == 1.0


def test_eight_threads():
    failures = []

    def work():
        try:
            for _ in range(100):
                x, w = point(2.0), point(3.0)
                assert [g.item() for g in grad(Affine.apply(x, w) * 2, (x, w))] == [6.0, 4.0]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
