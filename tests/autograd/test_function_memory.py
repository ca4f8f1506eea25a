"""What a Function keeps goes with its graph, by reference counting alone."""

import gc
import weakref

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad


@pytest.fixture(autouse=True)
def no_gc():
    collect()
    gc.disable()
    yield
    gc.enable()


def point(*values):
    return tg.tensor(list(values) or [1.0, 2.0], dtype=tg.float64, requires_grad=True)


def keep_saved(ctx, x, y, h):
    ctx.save_for_backward(x, y, h, y.view(-1), y.detach())
    ctx.save_for_forward(x, y)


def keep_attributes(ctx, x, y, h):
    ctx.x, ctx.y, ctx.h, ctx.view, ctx.detached = x, y, h, y.view(-1), y.detach()


def compute(ctx, keep, x):
    h = x * 2
    y = h.exp()
    keep(ctx, x, y, h)
    return y


def make(style, keep):
    """A Function of a style that keeps input, output, intermediate and views of the output."""
    if style == "legacy":

        class Legacy(Function):
            def forward(self, x):
                return compute(self, keep, x)

            def backward(self, g):
                return g

        return Legacy()
    if style == "setup_context":

        class Separate(Function):
            @staticmethod
            def forward(x):
                return (x * 2).exp()

            @staticmethod
            def setup_context(ctx, inputs, output):
                keep(ctx, inputs[0], output, inputs[0] * 2)

            @staticmethod
            def backward(ctx, g):
                return g

        return Separate.apply

    class Static(Function):
        @staticmethod
        def forward(ctx, x):
            return compute(ctx, keep, x)

        @staticmethod
        def backward(ctx, g):
            return g

    return Static.apply


@pytest.mark.parametrize("keep", [keep_saved, keep_attributes])
@pytest.mark.parametrize("style", ["ctx", "setup_context", "legacy"])
@pytest.mark.parametrize("end", ["unused", "after backward", "after grad"])
def test_nothing_kept_makes_a_circle(style, keep, end):
    """In PyTorch an output that is an attribute of ctx is a circle, which only the garbage collector frees."""
    f = make(style, keep)
    before = tg.memory_stats()["allocated"]
    x = point()
    y = f(x)
    if end == "after backward":
        y.sum().backward()
    elif end == "after grad":
        grad(y.sum(), x, create_graph=True)
    alive = [weakref.ref(o) for o in (x, y, y.grad_fn)]
    del x, y
    assert [r() for r in alive] == [None] * 3
    assert tg.memory_stats()["allocated"] == before


def test_an_output_kept_as_attribute_is_the_output():
    f = make("ctx", keep_attributes)
    x = point()
    y = f(x)
    ctx = y.grad_fn
    assert ctx.y is y and ctx.x is x and ctx.view.tolist() == y.tolist()
    values = y.tolist()
    del y
    assert ctx.y.tolist() == values and ctx.y.grad_fn is ctx
    assert grad(ctx.y.sum(), x)[0].tolist() == [1.0, 1.0]


def test_an_output_put_on_the_node_later_makes_no_circle():
    y = make("ctx", keep_saved)(point())
    y.grad_fn.mine = y
    assert y.grad_fn.mine is y
    alive = weakref.ref(y)
    del y
    assert alive() is None


def test_attributes_are_replaced_and_deleted():
    y = make("ctx", keep_attributes)(point())
    ctx = y.grad_fn
    ctx.y = 3
    assert ctx.y == 3
    del ctx.h
    with pytest.raises(AttributeError, match="'StaticBackward' object has no attribute 'h'"):
        _ = ctx.h
    with pytest.raises(AttributeError):
        del ctx.h
    del ctx.y
    assert not hasattr(ctx, "y")


def test_a_dirty_input_kept_as_attribute_makes_no_circle():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            ctx.x = x
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Double.apply(point() * 1)
    assert y.grad_fn.x is y
    alive = weakref.ref(y)
    del y
    assert alive() is None


def test_saved_tensors_are_freed_when_backward_has_run():
    f = make("ctx", keep_saved)
    x = point()
    y = f(x)
    before = tg.memory_stats()["allocated"]
    y.sum().backward()
    x.grad = None
    assert tg.memory_stats()["allocated"] < before


def test_saved_tensors_can_be_cleared_on_access():
    class Clear(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            h = x * 2
            Clear.alive = weakref.ref(h)
            ctx.save_for_backward(x, h)
            return h * x

        @staticmethod
        def backward(ctx, g):
            x, h = ctx.saved_tensors
            assert Clear.alive() is not None
            del h
            assert Clear.alive() is None
            return g * 4 * x

    x = point()
    Clear.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_boxed_gradients_can_be_freed_early():
    class Boxed(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3, "text"

        @staticmethod
        def backward(ctx, grads):
            assert isinstance(grads, list) and len(grads) == 3 and grads[2] is None
            alive = weakref.ref(grads[0])
            total = grads.pop(0) * 2
            assert alive() is None
            return total + grads.pop(0) * 3

    x = point()
    a, b, _ = Boxed.apply(x)
    (a * 2 + b * 1).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_an_exception_leaves_nothing_behind():
    class Fail(Function):
        @staticmethod
        def forward(ctx, x, where):
            ctx.where = where
            ctx.y = y = x * 2
            ctx.save_for_backward(x, y)
            if where == "forward":
                raise KeyboardInterrupt
            return y

        @staticmethod
        def backward(ctx, g):
            raise KeyboardInterrupt

    before = tg.memory_stats()["allocated"]
    x = point()
    for where in ("forward", "backward"):
        with pytest.raises(KeyboardInterrupt):
            Fail.apply(x, where).sum().backward()
    alive = weakref.ref(x)
    del x
    assert alive() is None and tg.memory_stats()["allocated"] == before
