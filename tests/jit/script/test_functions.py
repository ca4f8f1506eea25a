"""autograd.Functions and ops of programs in script keep their derivative; gradients go through branches and loops."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.autograd import Function, gradcheck, gradgradcheck
from tinygrad_ext.graph import Graph
from tinygrad_ext.graph.interpret import run
from tinygrad_ext.registry import scope


class Scaled(Function):
    """Its backward is not the derivative, so that a lost one is seen."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.factor + 100), None


class TwoResults(Function):
    @staticmethod
    def forward(ctx, x, y):
        result = x.exp()
        ctx.save_for_backward(result, y)
        return result, x * y

    @staticmethod
    def backward(ctx, first, second):
        result, y = ctx.saved_tensors
        grad_y = None
        if ctx.needs_input_grad[1]:
            grad_y = second * result.log()
        return first * result + second * y, grad_y


class WithSetup(Function):
    @staticmethod
    def forward(x, power):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, power = inputs
        ctx.save_for_backward(x)
        ctx.power = power

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.power * x ** (ctx.power - 1), None


@jit.script
def scaled(x, factor: float):
    return Scaled.apply(x, factor)


@jit.script
def scaled_by_a_constant(x):
    return Scaled.apply(x, 3.0) + Scaled.apply(x, 0.5)


def test_the_derivative_is_the_one_that_was_written():
    x = tg.ones(2, requires_grad=True)
    scaled(x, 2.0).sum().backward()
    assert x.grad.tolist() == [102.0, 102.0]
    (grad,) = tg.autograd.grad(scaled_by_a_constant(x).sum(), x)
    assert grad.tolist() == [203.5, 203.5]


def test_it_survives_text():
    graph = Graph.parse(str(scaled.graph)).check()
    x = tg.ones(1, requires_grad=True)
    (y,), _ = run(graph, [x, 2.0])
    assert tg.autograd.grad(y.sum(), x)[0].item() == 102.0


def test_one_node_in_autograd():
    x = tg.ones(1, requires_grad=True)
    y = scaled(x, 2.0)
    assert len(scaled.graph.nodes) == 1 and y.grad_fn.next_functions[0][0].name().endswith("AccumulateGrad")


@pytest.mark.parametrize("function", [TwoResults, WithSetup], ids=lambda f: f.__name__)
def test_gradients_of_both_orders(function):
    if function is TwoResults:

        def call(x):
            a, b = TwoResults.apply(x, x * 2)
            return a + b
    else:

        def call(x):
            return WithSetup.apply(x, 3)

    scripted = jit.script(call)
    x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    assert scripted(x).equal(call(x))
    assert gradcheck(scripted, x) and gradgradcheck(scripted, x)


def test_inside_of_branches_and_loops():
    @jit.script
    def program(x, n: int):
        for i in range(n):
            if i % 2 == 0:
                x = Scaled.apply(x, 1.0)
            else:
                x = x.sin()
        return x

    x = tg.tensor([0.3], requires_grad=True)
    (grad,) = tg.autograd.grad(program(x, 3).sum(), x)
    assert abs(grad.item() - 101.0 * 101.0 * x.cos().item()) < 1e-2


class InNumpy(Function):
    @staticmethod
    def forward(ctx, x):
        try:
            return x * 2
        finally:
            pass

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_a_body_that_does_not_compile_is_refused_by_line():
    def program(x):
        return InNumpy.apply(x)

    with pytest.raises(jit.Error) as error:
        jit.script(program)
    assert "try statements" in str(error.value) and "in forward" in str(error.value)
    assert "return InNumpy.apply(x)" in str(error.value)


@pytest.fixture
def nothing_stays():
    mark = scope.application.mark()
    yield
    scope.application.undo(mark)


@pytest.mark.usefixtures("nothing_stays")
def test_ops_of_programs():
    @tg.library.custom_op("script_tests::tripled", mutates_args=())
    def tripled(x: tg.Tensor) -> tg.Tensor:
        return x * 3

    tripled.register_autograd(lambda ctx, grad: grad * 30)

    @jit.script
    def program(x):
        return tg.ops.script_tests.tripled(x) + tripled(x)

    assert [n.op for n in program.graph.nodes[:2]] == ["script_tests::tripled"] * 2
    x = tg.ones(1, requires_grad=True)
    program(x).sum().backward()
    assert x.grad.item() == 60.0


def lstm(xs: list[tg.Tensor], h, c, w, u, b) -> tuple[tg.Tensor, tg.Tensor]:
    for x in xs:
        gates = x @ w + h @ u + b
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return h, c


def newton(x, steps: int, limit: float):
    y = x / 2
    for _ in range(steps):
        new = (y + x / y) / 2
        if bool((new - y).abs().max() < limit):
            return new
        y = new
    return y


def test_gradients_through_loops_are_eagers():
    size = 3
    given = [
        tg.randn(2, size),
        tg.randn(2, size),
        tg.randn(size, 4 * size),
        tg.randn(size, 4 * size),
        tg.randn(4 * size),
    ]
    results = []
    for function in (lstm, jit.script(lstm)):
        leaves = [g.clone().requires_grad_() for g in given]
        h, c = function([tg.ones(2, size) * k for k in range(4)], *leaves)
        (h.sum() + c.sum()).backward()
        results.append([h, c, *(leaf.grad for leaf in leaves)])
    assert all(a.equal(b) for a, b in zip(*results))


@pytest.mark.parametrize("steps", [0, 2, 40])
def test_gradients_through_early_returns_are_eagers(steps):
    grads = []
    for function in (newton, jit.script(newton)):
        x = tg.tensor([2.0, 5.0], requires_grad=True)
        grads.append(tg.autograd.grad(function(x, steps, 1e-3).sum(), x)[0])
    assert grads[0].equal(grads[1])


def test_traced_functions_and_modules_inside_of_script():
    weight = tg.ones(2, requires_grad=True)
    traced = jit.trace(lambda x: (x * weight).sin(), (tg.ones(2),))
    net = tg.nn.Sequential(tg.nn.Linear(2, 2), jit.trace(tg.nn.Linear(2, 2), (tg.ones(1, 2),)))

    @jit.script
    def program(x, n: int):
        for _ in range(n):
            x = traced(x)
        return x

    x = tg.tensor([0.5, 1.0])
    expected = (((x * weight).sin()) * weight).sin()
    result = program(x, 2)
    assert result.equal(expected)
    grads = [tg.autograd.grad(y.sum(), weight)[0] for y in (result, expected)]
    assert grads[0].equal(grads[1])
    assert jit.script(net)(tg.ones(3, 2)).equal(net(tg.ones(3, 2)))


def test_scripted_functions_inside_of_a_trace():
    @jit.script
    def scaled_often(x, n: int):
        for i in range(n):
            x = Scaled.apply(x, 2.0) if i % 2 == 0 else x.sin()
        return x

    traced = jit.trace(lambda x: scaled_often(x, 3) + 1, (tg.ones(2),))
    x = tg.tensor([0.1, 0.2, 0.3], requires_grad=True)
    (one,), (other,) = (tg.autograd.grad(f(x).sum(), x) for f in (traced, lambda x: scaled_often(x, 3) + 1))
    assert traced(x).equal(scaled_often(x, 3) + 1) and one.equal(other)


def test_gradients_may_be_asked_for_in_script():
    @jit.script
    def slopes(x, y):
        z = x * y * y
        first = tg.autograd.grad([z.sum()], [x, y], create_graph=True)
        slope = first[1]
        assert slope is not None
        second = tg.autograd.grad((slope.sum(),), (y,), allow_unused=True)
        return first, second

    x, y = (tg.rand(3, requires_grad=True) for _ in range(2))
    first, second = slopes(x, y)
    assert first[0].equal(y * y) and first[1].allclose(2 * x * y) and second[0].allclose(2 * x)

    @jit.script
    def fill(x):
        tg.autograd.backward((x.pow(2).sum(),))

    fill(x)
    assert x.grad.allclose(2 * x)


# ---- ops by themselves, and their older spellings ------------------------------------------------------------------


def test_every_public_op_function_is_compiled_by_itself():
    values = [v for space in (tg, tg.nn.functional, tg.linalg) for v in vars(space).values()]
    functions = [v for v in values if type(v) is type(tg.add)]
    assert len(functions) > 400
    for function in functions:
        assert jit.script(function).name == function.__name__
    x = tg.tensor([-1.0, 2.0])
    assert jit.script(tg.relu)(x).tolist() == [0, 2]
    assert (
        jit.script(tg.nn.functional.softplus)(x, beta=2.0).tolist() == tg.nn.functional.softplus(x, beta=2.0).tolist()
    )


def test_keywords_have_the_spellings_that_eager_mode_takes():
    def rounded(x):
        return tg.ceil(input=x), tg.sum(input=x, axis=0, keepdims=True), tg.atan2(input=x, other=x)

    x = tg.tensor([0.25, 1.5])
    for got, expected in zip(jit.script(rounded)(x), rounded(x)):
        assert got.tolist() == expected.tolist()
    with pytest.raises(jit.Error, match="takes no argument 'inputs'"):
        jit.script(misspelt)


def misspelt(x):
    return tg.ceil(x, inputs=x)


def test_constructors_from_before_dtypes():
    def made():
        return tg.BoolTensor([True, False]), tg.FloatTensor([1, 2]), tg.LongTensor(2, 3), tg.DoubleTensor([])

    for got, expected in zip(jit.script(made)(), made()):
        assert got.dtype == expected.dtype and got.shape == expected.shape
    assert jit.script(made)()[1].tolist() == [1, 2]


def test_lists_of_a_size_by_the_helpers_of_nn():
    from tinygrad_ext.nn.modules.utils import _pair, _quadruple, _single, _triple

    def sizes(given: list[int]):
        return _single(1), _pair(2), _triple(0.5), _quadruple(given), _pair((3, 4))

    assert jit.script(sizes)([5, 6, 7, 8]) == ([1], [2, 2], [0.5] * 3, [5, 6, 7, 8], [3, 4])


def mean_of(x: list[float] | None) -> float:
    return 0.0 if x is None else sum(x) / len(x)


def test_a_tuple_stands_for_an_optional_list():
    def called(x: tuple[float, float]):
        return mean_of(x) + mean_of((1.0, 2.0, 3.0)) + mean_of(None)

    assert jit.script(called)((1.0, 2.0)) == 3.5


def chosen(x, how: str):
    if how == "double":
        return x * 2
    else:
        raise NotImplementedError("no such way ", how)


def test_a_call_that_always_raises_ends_its_branch():
    @jit.script
    def program(x, wanted: bool):
        if wanted:
            x = chosen(x, "other")
        return chosen(x, "double")

    assert program(tg.ones(2), False).tolist() == [2.0, 2.0]
    with pytest.raises(jit.Error, match="no such way"):
        program(tg.ones(2), True)
