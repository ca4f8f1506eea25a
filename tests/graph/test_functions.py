"""A call of a Function is one node that holds forward and backward; no way through a graph loses or changes the
derivative."""

import pytest
from captured import captured, evaluated

import tinygrad_ext as tg
from tinygrad_ext.graph import Graph


class Odd(tg.autograd.Function):
    """x * y, with a derivative that is not that of a product."""

    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x * y, x + 1

    @staticmethod
    def backward(ctx, grad, _):
        x, y = ctx.saved_tensors
        return 7 * grad * y * ctx.factor, grad * x.sin(), None


class Separate(tg.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return 3 * grad * y


class Between(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.square = x * x
        return ctx.square * x

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.square * grad


def first(x, y):
    out, _ = Odd.apply(x.sin(), y, 2)
    return tg.autograd.grad((out * Separate.apply(x)).sum(), [x, y])


def second(x, y):
    out, _ = Odd.apply(x.sin(), y, 2)
    gx, gy = tg.autograd.grad((out * Separate.apply(x)).sum(), [x, y], create_graph=True)
    return tg.autograd.grad((gx * gx + gy).sum(), [x, y])


@pytest.mark.parametrize("function", [first, second])
def test_a_captured_derivative_is_the_functions_own(function):
    def given():
        return [t.requires_grad_() for t in (tg.tensor([0.5, 1.5]), tg.tensor([2.0, 3.0]))]

    graph = captured(function, *given())
    wanted = function(*given())
    for again in (graph, Graph.parse(str(graph)).check()):
        with tg.no_grad():
            got = evaluated(again, *given())
        assert all(a.equal(b) for a, b in zip(got, wanted))


def test_the_node_holds_both_halves():
    graph = captured(lambda x, y: Odd.apply(x, y, 2)[0], tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True))
    (node,) = graph.nodes
    assert node.op == "prim::Function" and node.args[0] == "Odd" and len(node.blocks) == 2
    assert [n.op for n in node.blocks[0].nodes] == ["aten::mul.Tensor", "aten::add.Tensor"]
    assert "aten::sin" in [n.op for n in node.blocks[1].nodes]


def test_a_derivative_outside_of_the_graph_is_the_functions_own_too():
    def f(x, y):
        return Odd.apply(x, y, 2)[0]

    graph = captured(f, tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True))
    x, y = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([3.0, 4.0], requires_grad=True)
    got = tg.autograd.grad(evaluated(graph, x, y).sum(), [x, y])
    wanted = tg.autograd.grad(f(x, y).sum(), [x, y])
    assert all(a.equal(b) for a, b in zip(got, wanted))


def test_a_second_derivative_that_nobody_knows_is_refused_as_in_eager_mode():
    def f(x):
        (g,) = tg.autograd.grad(Between.apply(x).sum(), [x], create_graph=True)
        return tg.autograd.grad(g.sum(), [x])

    with pytest.raises(RuntimeError, match="second derivative through it is not known"):
        captured(f, tg.ones(2, requires_grad=True))
    graph = captured(lambda x: tg.autograd.grad(Between.apply(x).sum(), [x]), tg.ones(2, requires_grad=True))
    with tg.no_grad():
        assert evaluated(graph, tg.tensor([2.0]))[0].tolist() == [12.0]
