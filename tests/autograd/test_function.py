"""autograd.Function: three styles, binding, refusals, memory."""

from collections import OrderedDict

import pytest
from affine import STYLES, Affine, AffineLegacy, AffineSeparate, point

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad, gradcheck, gradgradcheck


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
    assert grad(AffineLegacy()(w=w, x=x, b=b), w)[0].item() == 2.0
    assert grad(AffineSeparate.apply(w=w, x=x, b=b), w)[0].item() == 2.0


class Everything(Function):
    """Every kind of parameter; the gradient of each argument is its weight."""

    @staticmethod
    def forward(ctx, a, /, b, *more, c, d=None, **rest):
        ctx.inputs = [a, b, *more, c, *([] if d is None else [d]), *rest.values()]
        return sum(weight * t for weight, t in zip((1, 2, 3, 4, 5, 6), ctx.inputs))

    @staticmethod
    def backward(ctx, g):
        assert len(ctx.needs_input_grad) == 6
        return tuple(g * weight if need else None for weight, need in zip((1, 2, 3, 4, 5, 6), ctx.needs_input_grad))


class EverythingSeparate(Everything):
    @staticmethod
    def forward(a, /, b, *more, c, d=None, **rest):
        return a + 2 * b + 3 * more[0] + 4 * c + 5 * d + 6 * rest["e"]

    @staticmethod
    def setup_context(ctx, inputs, output):
        assert len(inputs) == 6 and all(isinstance(t, tg.Tensor) for t in inputs)


class EverythingLegacy(Function):
    def forward(self, a, /, b, *more, c, d=None, **rest):
        return a + 2 * b + 3 * more[0] + 4 * c + 5 * d + 6 * rest["e"]

    def backward(self, g):
        return {"a": g, "b": 2 * g, "more[0]": 3 * g, "c": 4 * g, "d": 5 * g, "e": 6 * g}


@pytest.mark.parametrize(
    "f", [Everything.apply, EverythingSeparate.apply, EverythingLegacy()], ids=["ctx", "setup", "legacy"]
)
def test_every_kind_of_parameter_binds(f):
    """PyTorch refuses keyword-only parameters beside setup_context with a TypeError."""
    a, b, c, d, e, more = (point(float(i)) for i in range(6))
    y = f(a, b, more, d=d, c=c, e=e)
    assert [g.item() for g in grad(y, (a, b, more, c, d, e))] == [1, 2, 3, 4, 5, 6]


def test_only_a_keyword_requires_grad():
    x, b = point(2.0).detach(), point(4.0)
    for f in STYLES.values():
        assert grad(f(x, x, b=b), b)[0].item() in (1.0, 2.0)


def test_backward_may_leave_out_defaults_that_were_not_given():
    """As in PyTorch, where a default is no argument of the call; a given one needs its gradient or None."""

    class Two(Function):
        @staticmethod
        def forward(ctx, x, w, scale=2.0, b=None):
            return x * w * scale

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = point(1.0)
    assert grad(Two.apply(x, x), x)[0].item() == 2.0
    with pytest.raises(RuntimeError, match=r"expected 4, got 2.*argument 'scale': missing"):
        grad(Two.apply(x, x, 3.0), x)


def test_a_forward_given_later_is_bound_anew():
    class Late(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g, None

    x = point(2.0)
    assert Late.apply(x).item() == 2.0
    Late.forward = staticmethod(lambda ctx, x, scale=5: x * scale)
    assert Late.apply(x, scale=3).item() == 6.0
    assert grad(Late.apply(x), x)[0].item() == 1.0


def test_decorated_and_untold_signatures_bind():
    import functools

    def loud(f):
        return functools.wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))

    class Loud(Function):
        forward = staticmethod(loud(lambda ctx, x, *, scale=2: x * scale))
        backward = staticmethod(loud(lambda ctx, g: {"x": g}))

    assert grad(Loud.apply(point(1.0), scale=3), x := point(1.0), allow_unused=True)[0] is None
    assert grad(Loud.apply(x, scale=3), x)[0].item() == 1.0


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


def test_vjp_is_a_name_for_backward():
    made = make()
    made.vjp = staticmethod(lambda ctx, g: (g * 5, None))
    x = point(1.0)
    made.apply(x).sum().backward()
    assert x.grad.item() == 5.0


def test_a_returned_input_becomes_an_alias():
    made = make(lambda ctx, x: x, lambda ctx, g: g * 7)
    x = point(1.0)
    y = made.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.item() == 7.0


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


def test_boxed_and_dict_gradients_agree():
    class Boxed(Affine):
        boxed_grads_call = True

        @staticmethod
        def backward(ctx, grads):
            return dict(zip("xwb", Affine.backward(ctx, *grads)))

    x, w, b = point(2.0), point(3.0), point(4.0)
    assert [g.item() for g in grad(Boxed.apply(x, w, b), (x, w, b))] == [3.0, 2.0, 1.0]
    assert gradgradcheck(Boxed.apply, (x, w, b))


def test_gradients_may_come_in_any_kind_of_dict():
    class Ordered(Function):
        @staticmethod
        def forward(ctx, a, n, b):
            return a * n + b

        @staticmethod
        def backward(ctx, g):
            return OrderedDict(b=g, a=g * 2)

    a, b = point(1.0, 2.0), point(1.0, 2.0)
    Ordered.apply(a, 2, b).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0] and b.grad.tolist() == [1.0, 1.0]


def test_a_boxed_function_on_a_view_it_writes_to():
    class Triple(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, grads):
            return grads.pop() * 3

    x = point(1.0, 2.0)
    y = x * 1
    Triple.apply(y[1:])
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 3.0]


def test_a_leaf_of_the_closure_returned_by_forward_stays_a_leaf():
    """PyTorch makes it an output: the user's parameter gets a grad_fn and is no leaf any more."""
    w = tg.nn.Parameter(tg.ones(2))
    y = make(lambda ctx, x: w, lambda ctx, g: g).apply(point(1.0, 2.0))
    assert w.is_leaf and w.requires_grad and y is not w and y.grad_fn.name() == "MadeBackward"
    assert y.data_ptr() == w.data_ptr()
