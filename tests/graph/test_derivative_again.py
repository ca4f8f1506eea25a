"""Derivatives of any order are graphs: through branches and loops a second and a third one, checked against eager."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tests.graph.test_derivative import PROGRAMS, Cube, loop, nested
from tests.graph.test_derivative_random import program_of
from tests.helpers.derivatives import orders, refused, runner, tensors
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph, passes

# sums over turns are made in another order
LOOPS = {"loop", "loop_while", "nested", "early_return", "indexed", "tuples", "functions"}


def doubles(rows, sign):
    return [t.detach().double().requires_grad_() for t in tensors(rows, sign)]


def close(found, expected, text=""):
    """Gradients of each order. None of eager mode is None or zeros here, sums in loops may differ."""
    for k, (row, wanted) in enumerate(zip(found, expected)):
        for a, b in zip(row, wanted):
            if b is None:
                assert a is None or (k and not a.any()), text
            else:
                assert a is not None and np.allclose(a, b, 1e-8, 1e-9 * max(1, np.abs(b).max(initial=0))), text


def bits(rows):
    """Zeros have no sign here."""
    return [[None if a is None else (a + 0.0).tobytes() for a in row] for row in rows]


@pytest.mark.parametrize(("program", "more"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_three_orders(program, more):
    graph = jit.script(program).graph
    for rows, sign in ((3, 1.0), (2, -1.0)):
        found, expected = (orders(call, [*doubles(rows, sign), *more], 3) for call in (runner(graph), program))
        close(found, expected)
        if program.__name__ not in LOOPS:
            count = min(2, len(expected))
            assert bits(found[:count]) == bits(expected[:count])
    assert refused(graph) == []


def test_one_derivative_serves_other_sizes_and_numbers_of_turns():
    graph = jit.script(loop).graph
    for rows, sign, n in ((3, 0.2, 4), (2, -0.1, 1), (4, 0.3, 7)):
        close(*(orders(call, [*doubles(rows, sign), n], 2) for call in (runner(graph), loop)))
    (joint,) = (j for each in graph.derivative.joints.values() for j in each)
    (again,) = (j for each in joint.whole.derivative.joints.values() for j in each)
    ops = [node.op for node in again.whole.walk()]
    assert ops.count("prim::Loop") == 4 and ops.count("prim::pop") == 4  # there, back, and both of them back
    assert Graph.parse(str(again.whole.check())) == again.whole


def test_gradgradcheck_of_scripted_programs():
    def cubes(x, w, n: int):
        for i in range(n):
            if i != 1:
                x = tg.tanh(x @ w) * x
        return x * x

    for program, n in ((cubes, 3), (nested, 3)):
        scripted = jit.script(program)
        x, w = doubles(2, 0.3)
        assert tg.autograd.gradcheck(lambda x, w, f=scripted, n=n: f(x, w, n), (x, w))
        assert tg.autograd.gradgradcheck(lambda x, w, f=scripted, n=n: f(x, w, n), (x, w))
        assert refused(scripted.graph) == []


def test_the_derivative_of_a_derivative_of_a_function_is_that_of_its_backward():
    def program(x, n: int):
        for _ in range(n):
            x = Cube.apply(x) * 0.5
        return x.sum()

    graph = jit.script(program).graph
    x = tg.tensor([0.5, 1.5], dtype=tg.float64, requires_grad=True)
    close(*(orders(call, [x, 2], 3) for call in (runner(graph), program)))
    assert refused(graph) == []


def test_a_loop_that_sometimes_does_not_run_has_its_second_derivative():
    graph = jit.script(nested).graph
    for n in (0, 1, 4, 0):
        close(*(orders(call, [*doubles(2, 0.5), n], 2) for call in (runner(graph), nested)))
    assert refused(graph) == []


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_random_programs(seed):
    program, text = program_of(seed)
    graph = jit.script(program).graph
    for rows, sign, n in ((3, 0.5, 3), (4, 1.0, 0)):
        x, w = doubles(rows, sign)
        args = [x, w, (x.detach() * 0.5).requires_grad_(), n]
        found, expected = (orders(call, args, 2) for call in (runner(graph), program))
        if all(a is None or (np.isfinite(a).all() and np.abs(a).max() < 1e6) for row in expected for a in row):
            close(found, expected, text)
    assert refused(graph) == []


def test_stacks_of_two_types_stay_two():
    graph = Graph.parse("""\
graph f() {
  %a: Stack[Tensor] = prim::stack()
  %b: Stack[int] = prim::stack()
  return %a, %b
}""")
    assert [str(v.type) for v in passes.optimize(graph).outputs] == ["Stack[Tensor]", "Stack[int]"]


def turned(x, w, n: int, a: float):
    for _ in range(n):
        x = tg.tanh(x @ w.t()) * (a * 0.5)
    return x


def test_a_turn_keeps_no_view_of_the_outside_and_no_number_that_follows_from_it():
    """A view of a weight would be copied into each row."""
    scripted = jit.script(turned)
    for order in (1, 2):
        w, x = tg.randn(3, 3, requires_grad=True), tg.randn(2, 3)
        found, expected = (orders(lambda w, f=f, x=x: f(x, w, 5, 0.3).sum(), [w], order) for f in (scripted, turned))
        close(found, expected)
    (joint,) = next(iter(scripted.graph.derivative.joints.values()))
    pushes = [node for node in joint.forward.walk() if node.op == "prim::push"]
    assert pushes and all(len(node.args) == 3 for node in pushes)  # what tanh gave, and what it was given


def reduced(x, w, n: int):
    for d in sorted([d for d in range(x.dim())], reverse=True):
        x = x.sum(d)
    return x * n


def grown(x, w, n: int):
    for _ in range(n):
        x = x.unsqueeze(0) * 2
    return x.sum(-1).exp().sum()


def of_either_rank(x, w, n: int):
    y = x.sum(0) if n > 1 else x
    return (y * y).sum(-1).sum()


def of_either_dtype(x, w, n: int):
    y = x.float() if n > 1 else x
    return (y * y.exp()).sum()


@pytest.mark.parametrize("program", [reduced, grown, of_either_rank, of_either_dtype], ids=lambda p: p.__name__)
def test_a_tensor_of_another_rank_in_a_turn_or_a_branch_is_left_to_eager_mode(program):
    """The rules are written down for one rank; they hold for each dtype."""
    scripted = jit.script(program)
    for n in (3, 0, 1, 2):
        row = doubles(3, 1.0)[:1]
        found, expected = (orders(lambda x, n=n, f=f: f(x, x, n), row, 1) for f in (scripted, program))
        assert bits(found) == bits(expected)
    assert any("dimensions" in why for why in refused(scripted.graph)) is (program is not of_either_dtype)


def with_a_list(x, w, n: int):
    log = [0]
    for i in range(n):
        for _ in range(2):
            x = x + (x * 0.5 if log[-1] % 2 == 0 else x * x)
        log.append(i + 1)
    return x


def test_what_a_turn_reads_of_a_list_is_kept_before_the_list_changes():
    scripted = jit.script(with_a_list)
    for n in (4, 0, 3):
        row = doubles(3, 0.1)[:1]
        close(*(orders(lambda x, n=n, f=f: f(x, x, n).sum(), row, 1) for f in (scripted, with_a_list)))
    assert refused(scripted.graph) == []
