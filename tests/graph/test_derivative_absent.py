"""Where a branch or a loop decides whether a gradient arrives, code of the user runs backward only if it did."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, library
from tinygrad_ext.autograd import Function
from tinygrad_ext.registry import scope


class Shifted(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 + 1


class Decides(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if bool(grad.sum() > 0):
            found = grad * x
        else:
            found = grad - x
        return found


@pytest.fixture
def custom():
    """An op whose derivative is a Python function with a constant term."""
    mark = scope.application.mark()

    @library.custom_op("absent::doubled", mutates_args=())
    def doubled(x: tg.Tensor) -> tg.Tensor:
        return x * 2

    doubled.register_autograd(lambda ctx, grad: grad * 3 + 1)
    yield doubled
    scope.application.undo(mark)


def choose(x, y, k):
    if bool(k > 2):
        r = x
    else:
        r = y
    return r


def gradients(function, ks, *rest):
    found = []
    for k in ks:
        w = tg.ones(2, requires_grad=True)
        found.append(tg.autograd.grad(function(w, k, *rest).sum(), w)[0].tolist())
    return found


def derived(graph):
    derivative = graph.derivative
    return bool(derivative.joints) and not derivative.refused and not derivative.tries


def of_custom_op(w, k: int):
    a, z = tg.ops.absent.doubled(w), w
    for i in range(k):
        b = tg.ops.absent.doubled(w * 5)
        if i == 1:
            z = z + b
    if k > 2:
        z = z * a
    return z


def test_a_custom_op(custom):
    scripted = jit.script(of_custom_op)
    assert gradients(scripted, range(5)) == gradients(of_custom_op, range(5))
    assert derived(scripted.graph)


def steady(w, k: int):
    h = w
    for _ in range(k):
        h = Shifted.apply(h)
    return h


def test_no_branch_is_made_where_a_gradient_arrives_in_each_turn():
    scripted = jit.script(steady)
    assert gradients(scripted, range(4)) == gradients(steady, range(4))
    (joint,) = next(iter(scripted.graph.derivative.joints.values()))
    assert [node.op for node in joint.backward.walk() if node.blocks] == ["prim::Loop"]


def of_traced(pick):
    def program(w, k):
        first, second = Shifted.apply(w), w * 4
        second.register_hook(lambda grad: grad + 10)
        return tg.autograd.grad(pick(first, pick(w * 7, second, k - 1), k).sum(), w)[0]

    return program


def test_hooks_and_functions_of_a_traced_program():
    traced = jit.trace(of_traced(jit.script(choose)), (tg.ones(2, requires_grad=True), tg.tensor(3)))
    for k in range(1, 5):
        args = tg.ones(2, requires_grad=True), tg.tensor(k)
        assert traced(*args).equal(of_traced(choose)(*args))


def test_a_hook_that_writes_to_what_is_outside_is_refused_there():
    outside = tg.zeros(2)

    def program(w, k):
        first, second = w * 3, w * 4
        second.register_hook(lambda grad: outside.add_(grad))
        return tg.autograd.grad(jit.script(choose)(first, second, k).sum(), w)[0]

    with pytest.raises(RuntimeError, match="decides whether a gradient arrives"):
        jit.trace(program, (tg.ones(2, requires_grad=True), tg.tensor(3)))


def test_a_backward_with_a_branch_is_derived():
    def program(w, k: int):
        return Decides.apply(w) * (k - 1)

    scripted = jit.script(program)
    assert gradients(scripted, (0, 3)) == gradients(program, (0, 3))
    assert derived(scripted.graph)


class Told(Function):
    """Is told which gradients did not arrive, and gives another one for each case."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x * y, x + y

    @staticmethod
    def backward(ctx, one, other):
        (x,) = ctx.saved_tensors
        if one is None:
            return None, other * 7
        if other is None:
            return one * x, None
        return one * x + other, one - 1


class ToldInNumPy(Told):
    @staticmethod
    def forward(ctx, x, y):
        x.detach().numpy()
        return Told.forward(ctx, x, y)


@pytest.mark.parametrize("told", [Told, ToldInNumPy])
def test_a_function_is_told_which_gradients_did_not_arrive(told):
    def program(wanted):
        def run(x, y):
            made = told.apply(x * 2, y * 3)
            return sum(made[i].sum() for i in wanted)

        return run

    def by(call):
        x, y = tg.ones(2, requires_grad=True), tg.full((2,), 2.0, requires_grad=True)
        return [g is not None and g.tolist() for g in tg.autograd.grad(call(x, y), (x, y), allow_unused=True)]

    for wanted in ((0,), (1,), (0, 1)):
        found, expected = by(jit.trace(program(wanted), (tg.ones(2), tg.ones(2)))), by(program(wanted))
        for a, b in zip(found, expected):  # outside of the library a gradient that is None is zeros
            assert a == b or (told is ToldInNumPy and not b and not any(a))


def test_a_function_is_told_so_where_a_branch_decides():
    def program(pick):
        def run(x, k):
            one, other = Told.apply(x, x * 2)
            return pick(one, pick(other, one * other, k - 2), k).sum()

        return run

    traced = jit.trace(program(jit.script(choose)), (tg.ones(2), tg.tensor(3)))
    for k in (1, 3, 5):
        assert gradients(traced, [tg.tensor(k)]) == gradients(program(choose), [tg.tensor(k)])


def random_in_a_branch(x, n: int, b: int):
    y = x * 0.5
    for _ in range(n):
        if b > 1:
            x = tg.rand_like(y) + x
    if n > 2:
        out = x - y
    else:
        out = y + y
    return out


@pytest.mark.parametrize(
    "sizes", [[(0, 1), (4, 1), (0, 3), (4, 3)], [(4, 3), (0, 1), (4, 1)], [(3, 1), (1, 1), (1, 2)]]
)
def test_a_way_that_has_no_derivative_leaves_the_others_whole(sizes):
    """What a gradient is added to is there, though the branch that draws is not derived."""
    scripted = jit.script(random_in_a_branch)
    for n, b in sizes:
        found = []
        for function in (random_in_a_branch, scripted):
            x = tg.tensor([0.5, -1.0], requires_grad=True)
            tg.manual_seed(0)
            out = function(x, n, b)
            found.append((out.tolist(), tg.autograd.grad(out.sum(), x)[0].tolist()))
        assert found[0] == found[1]


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_branch_that_draws_is_not_taken_and_a_loop_reads_what_the_other_gives(turns):
    """The derivative is good for one side of the branch, so what it gives has sizes."""
    f = tg.jit.CompilationUnit(
        """
def f(x, n: int):
    y = x * 2
    if bool(x[0] > 5):
        y = torch.rand_like(x)
    ts = [x]
    for k in range(n):
        ts.append(x + y)
    return torch.stack(ts).sum(0)
"""
    ).f
    x = tg.rand(3, requires_grad=True)
    assert tg.autograd.grad(f(x, turns).sum(), x)[0].tolist() == [1.0 + 3 * turns] * 3
    x = (tg.rand(3) + 5).requires_grad_()
    assert tg.autograd.grad(f(x, turns).sum(), x)[0].tolist() == [1.0 + turns] * 3
