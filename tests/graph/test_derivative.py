"""The derivative of a graph has eager's bits: through branches, loops and Functions, for other sizes, again derived."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tests.helpers.derivatives import runner, tensors
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph
from tinygrad_ext.registry import scope


def straight(x, w):
    y = (x @ w).relu().exp().sum(1)
    return (y * y.mean()).sum(), y


def branch(x, w):
    if bool(x.sum() > 0):
        y = x * w[0]
    else:
        y = x - w[1]
    return (y * x).sum()


def branch_of_ranks(x, w):
    if x.dim() == 3:
        y = x[0, 0, 0] * w
    else:
        y = x.matmul(w)
    return y.sum()


def one_side(x, w):
    h = x @ w
    if bool(w.sum() > 0):
        r = h.sum()
    else:
        r = x.sum()
    return r * 2


def loop(x, w, n: int):
    h = x
    for _i in range(n):
        h = tg.tanh(h @ w) + x
    return h.sum()


def loop_while(x, w):
    i = 0
    while bool(x.abs().sum() < 100.0):
        x = x * 2 + w.mean() * i
        i += 1
    return x.sin().sum(), i


def nested(x, w, n: int):
    acc = tg.zeros_like(x)
    for i in range(n):
        if i % 2 == 0:
            acc = acc + x * w[0, 0]
        else:
            acc = acc * w.mean()
            for j in range(i):
                acc = acc.exp() / (acc.exp() + x * float(j))
    return acc.sum()


def in_a_loop_of_no_turns(x, w, n: int):
    y = x
    for i in range(n):
        if i == 7:
            y = y * w[0]
        else:
            y = y + 1
    return y.sum()


def early_return(x, w, n: int):
    for i in range(n):
        x = x @ w
        if bool(x.abs().max() > 10):
            return x.sum() * i
    return x.mean()


def indexed(x, w):
    s = tg.zeros(())
    for i in range(x.size(0)):
        s = s + (x[i] * w[i % 2]).sum().tanh()
    return s


def numbers(x, w):
    s = 0.0
    for i in range(x.size(0)):
        s = s + float(x[i].mean().item())
    return (x * s + w[0]).sum()


def tuples(x, w):
    a, b = x.chunk(2, 1)
    p = (a, b)
    for _ in range(3):
        p = (p[1], p[0] * p[1])
    return p[0].sum() + (p[1] @ w[:2]).sum()


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x)
        return y * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x * 1.5  # no true derivative: who differentiates forward shows


def functions(x, w, n: int):
    for i in range(n):
        if i != 1:
            x = Cube.apply(x @ w) * 0.1
    return x.sum()


@pytest.fixture
def nothing_stays():
    mark = scope.application.mark()
    yield
    scope.application.undo(mark)


PROGRAMS = [
    (straight, ()), (branch, ()), (branch_of_ranks, ()), (one_side, ()), (loop, (4,)), (loop, (0,)), (loop_while, ()),
    (nested, (5,)), (in_a_loop_of_no_turns, (3,)), (in_a_loop_of_no_turns, (9,)), (early_return, (6,)), (indexed, ()),
    (numbers, ()), (tuples, ()), (functions, (3,)),
]  # fmt: skip


def outcome(call, args):
    """Results and gradients of one call."""
    out = call(*args)
    out = out if isinstance(out, tuple) else (out,)
    roots = [o for o in out if isinstance(o, tg.Tensor) and o.requires_grad]
    leaves = [a for a in args if isinstance(a, tg.Tensor) and a.requires_grad]
    grads = tg.autograd.grad(roots, leaves, [tg.ones_like(o) for o in roots], allow_unused=True)
    return told(out), told(grads)


def told(values):
    """Bits. 0.0 for -0.0: what stands for no gradient at all may change the sign of a zero. One nan is like another."""
    return [_bits(v.detach().numpy() + 0.0) if isinstance(v, tg.Tensor) else v for v in values]


def _bits(array):
    return np.where(np.isnan(array), np.float32("nan"), array).tobytes()


@pytest.mark.parametrize(("program", "more"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_bits_of_eager(program, more):
    graph = jit.script(program).graph
    call = runner(graph)
    for rows, sign in ((3, 1.0), (3, -1.0), (2, 1.0), (5, -1.0)):
        args = (*tensors(rows, sign), *more)
        assert outcome(call, args) == outcome(program, args)
    assert not graph.effects and not graph.derivative.refused
    assert sum(map(len, graph.derivative.joints.values())) <= 2


def test_one_node_of_autograd_runs_two_planned_graphs():
    x, w = tensors()
    traced = jit.trace(straight, (x, w))
    total, rows = traced(x, w)
    assert "Derived" in type(total.grad_fn).__name__ and total.grad_fn is rows.grad_fn
    assert total.grad_fn.next_functions[0][0].variable is x
    (joint,) = (j for each in traced.graph.derivative.joints.values() for j in each)
    for graph in (joint.forward, joint.backward, joint.whole):
        assert Graph.parse(str(graph.check())) == graph
    assert not joint.run_forward.boxed and not joint.run_backward.boxed
    assert all("in straight" in n.line for n in joint.backward.nodes if n.op.startswith("aten::"))


def test_a_gradient_that_nothing_arrives_at_is_none():
    call = runner(jit.script(one_side).graph)
    x, w = tensors(sign=-5.0)
    call(x, w).backward()
    assert x.grad is not None and w.grad is None


def test_gradients_of_what_is_not_reached_and_optional():
    def program(x, w: tg.Tensor | None, other):
        if w is None:
            return x.sum()
        return (x @ w).sum() + other.detach().sum()

    graph = jit.script(program).graph
    x, w = tensors()
    other = tg.ones(2, requires_grad=True)
    for args in ((x, w, other), (x, None, other)):
        assert outcome(runner(graph), args) == outcome(program, args)
    assert len(graph.derivative.joints) == 2


def test_a_saved_tensor_that_is_written_to_is_noticed():
    x, w = tensors()
    out = jit.script(loop)(x, w, 2)
    with tg.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_backward_twice_needs_the_graph_retained():
    x, w = tensors()
    out = jit.script(loop)(x, w, 2)
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_errors_are_those_of_the_program():
    x, w = tensors()
    scripted = jit.script(loop)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="mat1 and mat2|cannot be multiplied|shapes"):
            scripted(x, w[:3], 2)
    scripted(x, w, 2).backward()  # what went wrong is not held against the program
    assert "Derived" in type(scripted(x, w, 2).grad_fn).__name__


def test_random_numbers_come_from_the_same_stream():
    def program(x):
        y = tg.nn.functional.dropout(x * 2, 0.5)
        return (y * tg.rand(3, 4)).sum()

    x, _ = tensors()
    traced = jit.trace(program, (x,), check_trace=False)
    tg.manual_seed(7)
    expected = outcome(program, (x,)), tg.rand(2).tolist()
    tg.manual_seed(7)
    assert (outcome(traced, (x,)), tg.rand(2).tolist()) == expected
    assert traced.graph.derivative.joints and not traced.graph.derivative.refused


@pytest.mark.usefixtures("nothing_stays")
def test_the_backward_of_a_custom_op_is_captured():
    @tg.library.custom_op("derivative_tests::scaled", mutates_args=())
    def scaled(x: tg.Tensor, y: tg.Tensor, by: float) -> tg.Tensor:
        return x * y * by

    def setup(ctx, inputs, output):
        x, y, ctx.by = inputs
        ctx.save_for_backward(x, y)

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y * ctx.by * 10, grad * x * ctx.by, None

    scaled.register_autograd(backward, setup_context=setup)

    def step(x, w):
        return tg.autograd.grad((scaled(x, w[:3], 2.0) + x).sum(), (x, w))

    x, w = tensors()
    traced = jit.trace(step, (x, w))
    x, w = tensors(3, -1.0)
    assert told(traced(x, w)) == told(step(x, w))


@pytest.mark.usefixtures("nothing_stays")
def test_a_custom_op_without_derivative_is_refused_where_a_gradient_reaches_it():
    @tg.library.custom_op("derivative_tests::plain", mutates_args=())
    def plain(x: tg.Tensor) -> tg.Tensor:
        return x * 2

    x, _ = tensors()
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        jit.trace(lambda x: tg.autograd.grad((plain(x) + x).sum(), x), (x,))


def test_scripted_control_flow_stays_in_a_trace():
    scripted = jit.script(branch)

    def step(x, w):
        return tg.autograd.grad(scripted(x * 2, w), (x, w))

    traced = jit.trace(step, tensors(3, 1.0))
    assert [n.op for n in traced.graph.walk()].count("prim::If") == 2
    for rows, sign in ((3, -1.0), (2, 1.0)):
        args = tensors(rows, sign)
        assert told(traced(*args)) == told(step(*args))


def test_every_node_knows_the_programs_line():
    @jit.script
    def program(x, n: int):
        for _ in range(n):
            x = x * x if float(x.sum()) > 0 else x + 1
        return x

    program(tg.ones(3, requires_grad=True), 2).sum().backward()
    net = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.BatchNorm1d(4), tg.nn.Dropout(0.5))
    optim = tg.optim.Adam(net.parameters())

    def step(x):
        optim.zero_grad()
        loss = net(x).sum()
        loss.backward()
        optim.step()
        return loss

    graphs = [program.graph, jit.trace(step, (tg.ones(5, 3),)).graph]
    for joints in program.graph.derivative.joints.values():
        graphs += [graph for joint in joints for graph in (joint.forward, joint.backward, joint.whole)]
    assert len(graphs) == 5
    assert [node for graph in graphs for node in graph.walk() if "test_derivative.py" not in node.line] == []
