"""Every kind of autograd.Function is captured with its derivative, or as one node that calls it: values, gradients and
second derivatives are those of eager mode, inside of a graph and outside, or are refused as there."""

import io

import numpy as np
import pytest
from captured import same_bits
from functions_every_way import CASES, InNumPy, Reversal

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.autograd import Function
from tinygrad_ext.graph import Graph, GraphError
from tinygrad_ext.graph.capture import CaptureError
from tinygrad_ext.registry import scope

LEAVES = {"what_leaves_the_library", "numbers_read_of_elements"}
NO_SECOND = {"derivatives_of_the_first_order_only", *LEAVES}


def given(scale=1.0):
    x = tg.tensor([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]]) * scale
    y = tg.tensor([[2.0, 0.5, 1.0], [-1.0, 3.0, 0.5]]) + scale
    return x.requires_grad_(), y.requires_grad_()


def with_gradients(f):
    def run(x, y):
        out = f(x, y)
        return out.detach(), tg.autograd.grad((out * out).sum(), [x, y], allow_unused=True)

    return run


def with_second_derivatives(f):
    def run(x, y):
        grads = tg.autograd.grad((f(x, y) ** 2).sum(), [x, y], create_graph=True)
        return tg.autograd.grad(sum((g * g).sum() for g in grads), [x, y])

    return run


def results(run, *inputs):
    tg.manual_seed(3)
    return run(*inputs)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_inside_and_outside(name):
    f = CASES[name]
    traced, inside = jit.trace(f, given()), jit.trace(with_gradients(f), given())
    with tg.no_grad():
        plain = jit.trace(f, given())
        assert same_bits(results(plain, *given(2.0)), results(f, *given(2.0)))
    for scale in (1.0, 2.0):
        wanted = results(with_gradients(f), *given(scale))
        assert same_bits(results(inside, *given(scale)), wanted)
        assert same_bits(results(with_gradients(traced), *given(scale)), wanted)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_are_those_of_eager_mode_or_refused_as_there(name):
    f = CASES[name]
    if name in NO_SECOND:
        with pytest.raises(RuntimeError, match="differentia|derivative"):
            jit.trace(with_second_derivatives(f), given())
        with pytest.raises(RuntimeError, match="differentia|derivative"):
            with_second_derivatives(jit.trace(f, given()))(*given())
        return
    wanted = results(with_second_derivatives(f), *given())
    inside = jit.trace(with_second_derivatives(f), given())
    assert same_bits(results(inside, *given()), wanted)
    # outside, the derivative of a graph's gradients adds in another order
    got = results(with_second_derivatives(jit.trace(f, given())), *given())
    assert all(tg.allclose(a, b, 1e-5, 1e-5) for a, b in zip(got, wanted))


@pytest.mark.parametrize("name", CASES)
def test_what_is_captured_is_in_the_file_and_the_rest_is_refused_by_line(name):
    f = CASES[name]
    traced, file = jit.trace(f, given()), io.BytesIO()
    assert Graph.parse(str(traced.graph)).check() == traced.graph
    if name in LEAVES:
        with pytest.raises(GraphError, match=rf"(InNumPy|Clipped).*every_way.*{name}.*Write its forward"):
            jit.save(traced, file)
        return
    jit.save(traced, file)
    file.seek(0)
    loaded = jit.load(file)
    wanted = results(with_gradients(f), *given(2.0))
    assert same_bits(results(with_gradients(loaded), *given(2.0)), wanted)


def test_a_function_that_leaves_the_library_is_one_node():
    traced = jit.trace(lambda x, y: InNumPy.apply(x, y, 2.0)[0], given())
    (node,) = traced.graph.nodes[:1]
    assert node.op == "prim::Function" and [n.op for n in node.blocks[0].nodes] == ["prim::boxed"]
    assert [n.op for n in node.blocks[1].nodes] == ["prim::boxed", "prim::once"]


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        return tg.from_numpy(np.sin(x.numpy()))

    @staticmethod
    def backward(ctx, grad):
        return grad


def sine(x):
    return Sine.apply(x)


def test_script_and_files_of_scripts_refuse_it_by_line():
    with pytest.raises(RuntimeError, match=r"from_numpy(.|\n)*every_way.*in forward"):
        jit.script(sine)
    traced = jit.trace(sine, (tg.ones(2),))
    scripted = jit.script(lambda x: traced(x) + 1)
    assert scripted(tg.zeros(3)).tolist() == [1, 1, 1]
    with pytest.raises(GraphError, match=r"Sine.*every_way.*in sine"):
        jit.save(scripted, io.BytesIO())


@pytest.fixture
def custom_sine():
    mark = scope.application.mark()

    @tg.library.custom_op("every_way::sine", mutates_args=())
    def sine_of(x: tg.Tensor) -> tg.Tensor:
        return tg.from_numpy(np.sin(x.detach().numpy()))

    sine_of.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0].cos() * 3,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    yield sine_of
    scope.application.undo(mark)


def test_a_custom_op_with_a_python_kernel_is_a_node_everywhere(custom_sine):
    def f(x, y):
        return custom_sine(x) * y

    traced, file = jit.trace(f, given()), io.BytesIO()
    assert traced.graph.nodes[0].op == "every_way::sine"
    jit.save(traced, file)
    file.seek(0)
    wanted, second = with_gradients(f)(*given(2.0)), with_second_derivatives(f)(*given())
    for way in (traced, jit.load(file)):
        assert same_bits(with_gradients(way)(*given(2.0)), wanted)
        assert all(tg.allclose(a, b) for a, b in zip(with_second_derivatives(way)(*given()), second))
    assert same_bits(jit.trace(with_gradients(f), given())(*given(2.0)), wanted)
    assert same_bits(jit.trace(with_second_derivatives(f), given())(*given()), second)


class Counts(Function):
    seen = tg.zeros(())

    @staticmethod
    def forward(ctx, x):
        Counts.seen.add_(1)
        return x * Counts.seen

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_what_forward_writes_besides_its_inputs_is_kept():
    traced = jit.trace(lambda x: Counts.apply(x) + Counts.apply(x) * Counts.seen, (tg.ones(2),))
    assert Counts.seen == 0
    assert traced(tg.ones(2)).tolist() == [5, 5] and Counts.seen == 2
    assert traced(tg.ones(2)).tolist() == [19, 19] and Counts.seen == 4


class WritesUnmarked(Function):
    @staticmethod
    def forward(ctx, x):
        return x.add_(1) * 2

    @staticmethod
    def backward(ctx, grad):
        return grad


class WritesInNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        assert x.detach().numpy().shape == (2, 3)
        x.mul_(2)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad


class DrawsBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * tg.rand(3)


class DrawsInNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        return tg.from_numpy(x.detach().numpy() * 2) * tg.rand(3)

    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.mark.parametrize(
    "function, what",
    [
        (WritesUnmarked, "writes to an input"),
        (WritesInNumPy, "writes to an input"),
        (DrawsBackward, "draws random numbers"),
        (DrawsInNumPy, "draws random numbers"),
    ],
)
def test_what_cannot_be_told_is_refused(function, what):
    x, y = given()
    state = tg.get_rng_state()
    with pytest.raises(CaptureError, match=what):
        jit.trace(lambda x, y: function.apply(x * y), (x, y))
    assert tg.get_rng_state().equal(state)


def test_what_shares_memory_with_an_input_is_not_written_to():
    def run(x):
        y = x * 1
        z = Reversal.apply(y)
        y.add_(1)
        return z

    with pytest.raises(CaptureError, match=r"Return a clone\(\)"):
        jit.trace(run, (tg.ones(2, requires_grad=True),))
