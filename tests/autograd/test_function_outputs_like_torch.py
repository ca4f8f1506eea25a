"""Outputs of Functions, views and writes: equal to what PyTorch returns."""

from collections import namedtuple

import pytest
from functions import Scenarios, cube, kind_of_error, make, node, point

import tinygrad_ext as tg

SCENARIOS = Scenarios()


# ---- outputs


@SCENARIOS.add
def an_input_returned(T):
    x = point(T)
    y = make(T, lambda ctx, x: x, lambda ctx, g: g * 7).apply(x)
    plain = x.detach()
    z = make(T, lambda ctx, x: x).apply(plain)
    y.sum().backward()
    return y is x, y.data_ptr() == x.data_ptr(), node(y), x.grad.tolist(), z is plain, z.requires_grad, x.is_leaf


@SCENARIOS.add
def one_of_two_inputs_returned(T):
    x, w = point(T), point(T).detach()
    a, b = make(T, lambda ctx, x, w: (w, x * 2), lambda ctx, g, h: (h * 2 + g, g)).apply(x, w)
    (a + b).sum().backward()
    return a is w, a.requires_grad, w.requires_grad, x.grad.tolist()


@SCENARIOS.add
def a_view_returned(T):
    x = point(T) * 1
    y = make(T, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2) * 7).apply(x)
    return (
        node(y),
        y._is_view(),
        y.tolist(),
        kind_of_error(lambda: y.mul_(2)),
        kind_of_error(lambda: y.detach().mul_(1)),
    )


@SCENARIOS.add
def the_same_output_twice(T):
    x, seen = point(T), []

    def forward(ctx, x):
        y = x * 2
        return y, y

    made = make(T, forward, lambda ctx, g, h: seen.append((g.tolist(), h.tolist())) or (g + h) * 2)
    a, b = made.apply(x)
    (a * 3 + b * 5).sum().backward()
    return a is b, seen, a.output_nr, x.grad.tolist()


@SCENARIOS.add
def integer_outputs(T):
    seen = []

    def forward(ctx, x):
        values, order = x.sort()
        return values, order, (x > 1)

    def backward(ctx, *grads):
        seen.append([str(g.dtype) for g in grads])
        seen.append(grads[1].tolist())
        return grads[0]

    x = point(T, 2.0, 1.0)
    y, order, mask = make(T, forward, backward).apply(x)
    y.sum().backward()
    return order.requires_grad, mask.requires_grad, node(order), seen, x.grad.tolist()


@SCENARIOS.add
def outputs_that_are_no_tensors(T):
    seen = []

    def backward(ctx, *grads):
        seen.append([g is None for g in grads])
        return grads[0]

    x = point(T)
    out = make(T, lambda ctx, x: (x * 1, None, "text", 3), backward).apply(x)
    out[0].sum().backward()
    return out[1:], seen, make(T, lambda ctx, x: None).apply(x), make(T, lambda ctx, x: "text").apply(x)


@SCENARIOS.add
def no_outputs(T):
    return make(T, lambda ctx, x: ()).apply(point(T))


@SCENARIOS.add
def one_output_in_a_tuple(T):
    out = make(T, lambda ctx, x: (x * 3,)).apply(point(T))
    return type(out).__name__, len(out), node(out[0])


@SCENARIOS.add
def non_differentiable_outputs(T):
    seen = []

    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        return a, b

    x = point(T)
    a, b = make(T, forward, lambda ctx, g, h: seen.append(h.tolist()) or g * 2).apply(x)
    (a * b).sum().backward()
    return b.requires_grad, node(b), b.is_leaf, seen, x.grad.tolist()


@SCENARIOS.add
def gradients_are_made_of_zeros_or_not(T):
    found = []
    for materialize in (True, False):

        def forward(ctx, x, materialize=materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        def backward(ctx, g, h):
            found.append((None if g is None else g.tolist(), None if h is None else h.tolist()))
            return g * 2

        make(T, forward, backward).apply(point(T))[0].sum().backward()
    return found


@SCENARIOS.add
def non_contiguous_outputs(T):
    x = T.arange(6.0, dtype=T.float64).view(2, 3).requires_grad_()
    y = make(T, lambda ctx, x: (x * 2).t(), lambda ctx, g: g.t() * 2).apply(x)
    (y * T.arange(6.0, dtype=T.float64).view(3, 2)).sum().backward()
    return y.is_contiguous(), y.stride(), y.tolist(), x.grad.tolist()


@SCENARIOS.add
def a_tensor_of_the_closure_returned(T):
    made = T.ones(2, dtype=T.float64)
    x = point(T)
    y = make(T, lambda ctx, x: made, lambda ctx, g: g * 3).apply(x)
    y.sum().backward()
    return y is made, x.grad.tolist()


@SCENARIOS.add
def outputs_keep_their_grad(T):
    x = point(T)
    y = cube(T).apply(x)
    y.retain_grad()
    (y * 2).sum().backward()
    return y.grad.tolist(), y.is_leaf, y.retains_grad


# ---- views and writes


@SCENARIOS.add
def a_view_whose_base_is_written_to(T):
    errors = []
    for write in (lambda t: t.mul_(2), lambda t: t.detach().mul_(2)):
        x = point(T) * 1
        y = make(T, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(x)
        write(x)
        errors.append((kind_of_error(lambda y=y: y.grad_fn), kind_of_error(lambda y=y: (y * 2).sum().backward())))
    return errors


@SCENARIOS.add
def a_view_of_a_returned_view_is_written_to(T):
    x = point(T) * 1
    y = make(T, lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(x)
    return kind_of_error(lambda: y[0].mul_(2)), y[0].tolist(), kind_of_error(lambda: (y[0] * 2).sum().backward())


@SCENARIOS.add
def a_returned_input_is_written_to(T):
    x = point(T)
    h = x * 1
    y = make(T, lambda ctx, x: x, lambda ctx, g: g * 3).apply(h)
    plain = make(T, lambda ctx, x: x).apply(h.detach())
    plain.mul_(5)
    return y._is_view(), kind_of_error(lambda: y.mul_(2)), plain._is_view(), h.tolist()


@SCENARIOS.add
def applied_to_a_view(T):
    x = T.arange(4.0, dtype=T.float64).requires_grad_()
    y = x * 1
    z = cube(T).apply(y[1:3])
    z.sum().backward()
    return x.grad.tolist()


@SCENARIOS.add
def a_saved_view_is_written_through_its_base(T):
    y = point(T) * 1
    z = cube(T).apply(y[:1])
    y.mul_(2)
    return kind_of_error(lambda: z.sum().backward())


@SCENARIOS.add
def dirty_and_non_differentiable(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(3)

    x = point(T)
    y = x * 1
    z = make(T, forward).apply(y)
    return z.requires_grad, z.data_ptr() == y.data_ptr(), y.requires_grad, y._version


@SCENARIOS.add
def named_tuples_of_outputs_and_gradients(T):
    pair = namedtuple("pair", "a b")
    x, w = point(T), point(T)
    made = make(T, lambda ctx, x, w: pair(x * 2, w * 3), lambda ctx, g, h: pair(g * 2, h * 3))
    out = made.apply(x, w)
    (out[0] + out[1]).sum().backward()
    return len(out), x.grad.tolist(), w.grad.tolist()


@SCENARIOS.add
def settable_fields_of_ctx(T):
    def forward(ctx, x):
        ctx.materialize_grads = False
        return x * 2, x * 3

    seen = []
    f = make(T, forward, lambda ctx, g, h: seen.append(h is None) or g * 2).apply(point(T))[0]
    f.sum().backward()
    f.grad_fn.needs_input_grad = (False,)
    return seen, f.grad_fn.needs_input_grad


@SCENARIOS.add
def dirty_view_with_one_output(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    x = T.arange(4.0, dtype=T.float64).requires_grad_()
    y = x * 1
    v = y[1:3]
    out = make(T, forward).apply(v)
    y.sum().backward()
    return out is v, y.tolist(), x.grad.tolist(), node(y)


@SCENARIOS.add
def dirty_view_after_other_arguments(T):
    def forward(ctx, n, x):
        ctx.mark_dirty(x)
        return x.mul_(n)

    x = T.arange(4.0, dtype=T.float64).requires_grad_()
    y = x * 1
    make(T, forward, lambda ctx, g: (None, g * 3)).apply(3, y[1:3])
    y.sum().backward()
    return x.grad.tolist()


@SCENARIOS.add
def integers_in_a_returned_list(T):
    out = make(T, lambda ctx, x: (x * 2, [x.long()])).apply(point(T))
    return out[1][0].tolist(), node(out[0])


@SCENARIOS.add
def dirty_input_then_more(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    x = point(T)
    y = x * 1
    z = make(T, forward).apply(y)
    z.mul_(2)
    z.sum().backward()
    return z is y, x.grad.tolist(), y._version


@SCENARIOS.add
def dirty_input_without_grad(T):
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        return x.mul_(w)

    x, w = T.ones(2, dtype=T.float64), point(T)
    y = make(T, forward, lambda ctx, g: (None, g * 4)).apply(x, w)
    y.sum().backward()
    return y is x, x.requires_grad, w.grad.tolist()


@SCENARIOS.add
def dirty_without_any_grad(T):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    x = T.ones(2)
    y = make(T, forward).apply(x)
    return y is x, y.tolist(), y._version, node(y)


@SCENARIOS.add
def an_output_is_written_to(T):
    x = point(T)
    y = cube(T).apply(x)
    y.mul_(2)
    y.sum().backward()
    return x.grad.tolist(), y._version


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_as_pytorch(name):
    torch = pytest.importorskip("torch")
    assert SCENARIOS[name](tg) == SCENARIOS[name](torch)


def test_a_dirty_view_may_stand_behind_another_tensor():
    """PyTorch takes the first argument for the view: here it gives w nothing, and x 40 instead of 30."""

    def forward(ctx, w, view):
        ctx.mark_dirty(view)
        return view.mul_(3).add_(w)

    x, w = point(tg, 1.0, 2.0, 3.0), point(tg, 5.0)
    y = x * 1
    make(tg, forward, lambda ctx, g: {"w": g, "view": g * 3}).apply(w, y[1:2])
    (y * tg.tensor([1.0, 10.0, 100.0], dtype=tg.float64)).sum().backward()
    assert y.tolist() == [1.0, 11.0, 3.0] and x.grad.tolist() == [1.0, 30.0, 100.0] and w.grad.tolist() == [10.0]
