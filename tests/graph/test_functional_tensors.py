"""A graph writes to tensors of its own without an effect, in branches, loops and blocks without gradients."""

import pytest

import tinygrad_ext as tg
from tests.graph.test_derivative import outcome, told
from tests.graph.test_derivative_again import close, doubles
from tests.helpers.derivatives import orders, refused, runner, tensors
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph, passes


def added(x, w):
    y = x * 2
    y.add_(w[0]).mul_(x)
    y += 1
    return (y * y).sum()


def filled(x, w, n: int):
    out = tg.zeros(n, 4)
    for i in range(n):
        out[i] = x[i % x.size(0)] @ w
        if i == 2:
            out[i] += 1.5
    return (out * out).sum()


def masked(x, w):
    y = x @ w
    y[y > 1] = 0.5
    y[:, 1] = x[:, 0]
    y[..., 0] *= 2
    y[1:] -= 1
    return y.exp().sum()


def accumulated(x, w, n: int):
    total = tg.zeros_like(x)
    for i in range(n):
        total.add_((x @ w).tanh(), alpha=0.5)
        if i % 2 == 1:
            total.mul_(w[1])
    return total.sum()


def window_before(x, w):
    y = x * 3
    a = y.sum() * y[0].mean()
    y.mul_(w[0])
    return a + y.sum()


def no_grads(x, w, n: int):
    s = x.sum()
    for i in range(n):
        with tg.no_grad():
            scale = w.abs().max() + s
            if i == 1:
                scale = scale * 2
            kept = x
        s = s + (x * scale).sum() + kept.mean()
    return s


def spoken(x, w, n: int):
    if n < 0:
        raise ValueError("too small")
    y = x @ w
    assert y.dim() == 2, "a matrix"
    for i in range(n):
        if i == 7:
            raise RuntimeError("seven")
        y = y.tanh() * i
    return y.sum()


def copied(x, w):
    y = tg.empty(4, 4)
    y.copy_(w)
    y.clamp_(-1.0, 1.0).sub_(x[0])
    return (y * x[0]).sum()


PROGRAMS = [
    (added, ()), (filled, (4,)), (masked, ()), (accumulated, (4,)), (window_before, ()), (no_grads, (3,)),
    (spoken, (3,)), (copied, ()),
]  # fmt: skip


@pytest.mark.parametrize(("program", "more"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_values_and_gradients_have_the_bits_of_eager(program, more):
    scripted = jit.script(program)
    for rows, sign in ((3, 1.0), (2, -1.0), (5, 1.0)):
        args = (*tensors(rows, sign), *more)
        assert outcome(scripted, args) == outcome(program, args)
        with tg.no_grad():
            assert told([scripted(*args)]) == told([program(*args)])
    assert not scripted.graph.effects
    close(*(orders(call, [*doubles(3, 0.5), *more], 2) for call in (runner(scripted.graph), program)))
    assert refused(scripted.graph) == []


def kept_window(x):
    y = x * 2
    v = y[0]
    y.add_(1)
    return y, v


def in_a_list(x):
    y = x * 2
    items = [y]
    y.add_(1)
    return items[0]


def returned_before(x, n: int):
    y = x * 2
    out = [y]
    for _ in range(n):
        out.append(y)
        y.add_(1)
    return out[0]


def of_another_mode(x):
    y = x * 2
    with tg.no_grad():
        y.add_(1)
    return y


def an_argument(x):
    x.mul_(2)
    return x


def window_of_an_argument(x):
    x[0].mul_(2)
    return x


def read_in_the_next_turn(x, n: int):
    y = x * 1
    v = y.view(-1)
    s = x.sum()
    for _ in range(n):
        s = s + v[0]
        y.add_(1)
    return s


KEPT = [
    (kept_window, ()), (in_a_list, ()), (returned_before, (2,)), (of_another_mode, ()), (an_argument, ()),
    (window_of_an_argument, ()), (read_in_the_next_turn, (3,)),
]  # fmt: skip


@pytest.mark.parametrize(("program", "more"), KEPT, ids=lambda p: getattr(p, "__name__", ""))
def test_what_others_may_see_keeps_its_effect(program, more):
    scripted = jit.script(program)
    assert scripted.graph.effects
    found, expected = (call(tg.arange(6.0).reshape(2, 3), *more) for call in (scripted, program))
    found, expected = (r if isinstance(r, tuple) else (r,) for r in (found, expected))
    assert [a.tolist() for a in found] == [b.tolist() for b in expected]


def test_explain_says_why_effects_stay():
    graph = jit.script(window_of_an_argument).graph
    graph.execute([tg.ones(2, 2)])
    assert "mul_.Tensor changes what others may hold, or see" in graph.explain()


def test_a_result_that_does_not_fit_is_refused_as_in_eager_mode():
    def wider(x):
        y = x * 2
        y.add_(tg.ones(3, 2, 2))
        return y

    def of_numbers(x):
        y = x.to(tg.int64)
        y.add_(0.5)
        return y

    for program, words in ((wider, "doesn't match the broadcast shape"), (of_numbers, "can't be cast")):
        for call in (jit.script(program), program):
            with pytest.raises(RuntimeError, match=words):
                call(tg.ones(2, 2))


def test_the_dtype_of_what_is_written_to_stays():
    def program(x):
        y = x.float() * 1
        y.add_(x.double())
        return y

    scripted = jit.script(program)
    assert not scripted.graph.effects
    assert scripted(tg.ones(2)).dtype is tg.float32


def test_what_is_picked_written_and_put_back_is_one_write():
    text = """\
graph f(%x: Tensor) effects {
  %y: Tensor = aten::clone(%x, None)
  %v: Tensor = aten::select.int(%y, 0, 1)
  %1: Tensor = aten::mul_.Tensor(%v, 2)
  prim::tensor.set_item(%y, 1, %v)
  return %y
}"""
    assert not passes.Functional().run(Graph.parse(text)).check().effects
    elsewhere = text.replace("set_item(%y, 1,", "set_item(%y, 0,")
    assert passes.Functional().run(Graph.parse(elsewhere)).check().effects


def test_whether_a_gradient_is_needed_is_known():
    @jit.script
    def program(x):
        with tg.no_grad():
            inside = tg.is_grad_enabled()
        b = x + x.detach()
        return inside, tg.is_grad_enabled(), b

    def asks(x):
        b = x + x
        return b.requires_grad, x.detach().requires_grad, b

    asking = jit.script(asks)
    assert not program.graph.effects and not asking.graph.effects
    x = tg.ones(2, requires_grad=True)
    for _ in range(2):
        assert program(x)[:2] == (False, True)
        assert asking(x)[:2] == (True, False)
        assert asking(x.detach())[:2] == (False, False)
        with tg.no_grad():
            assert program(x)[:2] == (False, False)


def test_what_is_said_is_said_once(capsys):
    @jit.script
    def program(x, n: int):
        print("begin")
        for i in range(n):
            x = x * x
            print("turn", i)
        return x.sum()

    x = tg.ones(2, requires_grad=True)
    for _ in range(2):
        out = program(x, 2)
        assert capsys.readouterr().out == "begin\nturn 0\nturn 1\n"
        (grad,) = tg.autograd.grad(out, x, create_graph=True)
        grad.sum().backward()
        assert capsys.readouterr().out == ""
    assert refused(program.graph) == []


def test_arguments_that_fit_no_derivative_do_not_stand_in_the_way_of_others():
    graph = jit.script(filled).graph
    for n in (0, 4):
        args = (*tensors(), n)
        assert outcome(runner(graph), args) == outcome(filled, args)
    assert graph.derivative.joints and not graph.derivative.refused
