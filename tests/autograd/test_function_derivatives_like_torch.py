"""Derivatives, nesting and modes of Functions: equal to what PyTorch returns."""

import warnings

import pytest
from functions import Scenarios, cube, make, node, point, title

import tinygrad_ext as tg

SCENARIOS = Scenarios()


# ---- derivatives of derivatives


@SCENARIOS.add
def derivatives_to_third_order(T):
    x, values = point(T), []
    y = cube(T).apply(x)
    for _ in range(3):
        (y,) = T.autograd.grad(y.sum(), x, create_graph=True)
        values.append(y.tolist())
    return values


@SCENARIOS.add
def saved_output_to_third_order(T):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    made, x, values = make(T, forward, lambda ctx, g: g * ctx.saved_tensors[0]), point(T), []
    y = made.apply(x)
    for _ in range(3):
        (y,) = T.autograd.grad(y.sum(), x, create_graph=True)
        values.append([round(v, 12) for v in y.tolist()])
    return values


@SCENARIOS.add
def without_create_graph_there_is_no_second(T):
    x = point(T)
    (g,) = T.autograd.grad(cube(T).apply(x).sum(), x)
    return g.requires_grad, g.tolist()


@SCENARIOS.add
def grad_mode_in_forward_and_backward(T):
    seen = []
    made = make(
        T,
        lambda ctx, x: seen.append(T.is_grad_enabled()) or x * 1,
        lambda ctx, g: seen.append((T.is_grad_enabled(), g.requires_grad)) or g,
    )
    x = point(T)
    made.apply(x).sum().backward()
    T.autograd.grad((made.apply(x) * x).sum(), x, create_graph=True)
    return seen


@SCENARIOS.add
def a_gradient_penalty(T):
    x, w = point(T), point(T, 0.5, -1.0)
    (g,) = T.autograd.grad(cube(T).apply(x * w).sum(), x, create_graph=True)
    (g * g).sum().backward()
    return x.grad.tolist(), w.grad.tolist()


# ---- Functions within Functions


@SCENARIOS.add
def function_inside_forward(T):
    inner = cube(T)
    made = make(T, lambda ctx, x: inner.apply(x) * 2, lambda ctx, g: g * 7)
    x = point(T)
    y = made.apply(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist(), [title(f) for f, _ in y.grad_fn.next_functions]


@SCENARIOS.add
def function_inside_backward(T):
    inner = cube(T)
    made = make(
        T, lambda ctx, x: ctx.save_for_backward(x) or x**4 / 4, lambda ctx, g: g * inner.apply(ctx.saved_tensors[0])
    )
    x = point(T)
    (g,) = T.autograd.grad(made.apply(x).sum(), x, create_graph=True)
    return g.tolist(), T.autograd.grad(g.sum(), x)[0].tolist()


@SCENARIOS.add
def backward_inside_backward(T):
    """A checkpoint: forward without a graph, which backward builds and runs again."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp() * x

    def backward(ctx, g):
        inner = ctx.saved_tensors[0].detach().requires_grad_()
        with T.enable_grad():
            y = inner.exp() * inner
        y.backward(g)
        return inner.grad

    made, x = make(T, forward, backward), point(T, 0.0, 1.0)
    made.apply(made.apply(x)).sum().backward()
    return [round(v, 6) for v in x.grad.tolist()]


@SCENARIOS.add
def grad_inside_forward(T):
    def forward(ctx, x):
        with T.enable_grad():
            y = x.detach().requires_grad_()
            (g,) = T.autograd.grad((y * y).sum(), y)
        return g

    made, x = make(T, forward, lambda ctx, g: g * 2), point(T)
    y = made.apply(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


@SCENARIOS.add
def chains_share_an_input(T):
    made, x = cube(T), point(T)
    y = made.apply(x)
    (made.apply(y) + y * made.apply(x)).sum().backward()
    return x.grad.tolist()


# ---- modes


@SCENARIOS.add
def under_no_grad(T):
    made, x = cube(T), point(T)
    with T.no_grad():
        y = made.apply(x)
    return node(y), y.requires_grad, y.is_leaf, y.tolist()


@SCENARIOS.add
def needs_input_grad_under_no_grad(T):
    seen = []
    made, x = make(T, lambda ctx, x: seen.append(ctx.needs_input_grad) or x * 1), point(T)
    with T.no_grad():
        made.apply(x)
    made.apply(x)
    made.apply(x.detach())
    return seen


@SCENARIOS.add
def under_inference_mode(T):
    made, x = cube(T), point(T)
    with T.inference_mode():
        y = made.apply(x)
    return node(y), y.requires_grad, y.is_inference()


@SCENARIOS.add
def nothing_requires_grad(T):
    y = cube(T).apply(point(T).detach())
    return node(y), y.requires_grad, y.is_leaf


@SCENARIOS.add
def hooks_of_the_node(T):
    x, seen = point(T), []
    y = make(T, None, lambda ctx, g: seen.append(("backward", g.tolist())) or g * 3).apply(x)
    y.register_hook(lambda g: seen.append(("tensor", g.tolist())))
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", [g.tolist() for g in gs])) or (gs[0] * 2,))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", [g.tolist() for g in gi])) or (gi[0] * 5,))
    y.retain_grad()
    y.sum().backward()
    return seen, x.grad.tolist(), y.grad.tolist()


@SCENARIOS.add
def a_removed_hook_is_gone(T):
    x = point(T)
    y = make(T).apply(x)
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 100,)).remove()
    y.sum().backward()
    return x.grad.tolist()


@SCENARIOS.add
def anomaly_mode(T):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with T.autograd.detect_anomaly():
            x = point(T)
            cube(T).apply(x).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_as_pytorch(name):
    torch = pytest.importorskip("torch")
    assert SCENARIOS[name](tg) == SCENARIOS[name](torch)
