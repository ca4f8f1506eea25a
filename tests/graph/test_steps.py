"""Branches and loops run without the interpreter: numbers as in Python, tensors by plans, with the user's lines."""

import math
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph, interpret


def sums(n: int, x: float):
    s, k = 0.0, 0
    for i in range(n):
        if i % 3 == 0:
            s = s + i * x
        elif k > 5 and not s > 1e9:
            s = s - 1.25 / (k + 1)
        k = (k * 7 + i) % 11
    return s, k


def arithmetic(n: int, x: float):
    a, b, c, f = 1, 0, True, 0.0
    for i in range(-3, n, 2):
        a = a * 3 - i
        b = (a // (i * 2 + 1)) ^ (a % (i * 2 - 1)) | (i & 5)
        c = not c or a > b
        f = f + abs(x) ** 0.5 - float(b) / 3 + min(f, x) * max(x, 0.5) + x // 0.7 - x % -0.3
        if f != f:
            break
        a = int(f) % 1000003 if abs(f) < 1e15 else -a
        b = -b << 2 >> 1
    return a, b, c, f


def functions(n: int, x: float):
    s = x
    for i in range(n):
        s = math.sin(s) + math.exp(-s * s) + math.atan2(s, i + 1.0) + math.floor(s) + math.ceil(s / 2) + round(s * 3)
        if math.isnan(s) or math.isinf(s):
            return s, i
    return s, -1


def early(n: int, x: float):
    i = 0
    while i * i < n or x > i:
        i += 1
        for j in range(i):
            if j * 7 % 5 == n % 5:
                continue
            if j > 40:
                return i, x
            x = x - 0.125 * j
    return -i, x


def growing(n: int, x: float):
    a = 1
    for _ in range(n):
        a = a * 1000
    return a, x


def dividing(n: int, x: float):
    s = 0.0
    for i in range(n):
        s = s + 1 / (7 - i)
    return s, x


def asserting(n: int, x: float):
    s = 0
    for i in range(n):
        assert i < 12, "too far"
        s += i
    return s, x


PROGRAMS = [sums, arithmetic, functions, early, growing, dividing, asserting]
SCRIPTED = {p: jit.script(p) for p in PROGRAMS}


def outcome(call, *args):
    try:
        return repr(call(*args))
    except (ArithmeticError, ValueError, AssertionError) as error:
        return type(error).__mro__[-4:], str(error).partition("\n")[0]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@settings(deadline=None, max_examples=60)
@given(n=st.integers(-5, 30), x=st.floats(-50, 50))
def test_numbers_are_python_s(program, n, x):
    mine, python = outcome(SCRIPTED[program], n, x), outcome(program, n, x)
    if isinstance(python, tuple):
        assert isinstance(mine, tuple) and python[1] in mine[1]
    else:
        assert mine == python


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_loops_over_numbers_are_planned(program):
    graph = SCRIPTED[program].graph
    SCRIPTED[program](3, 0.5)
    kinds = {line.kind for line in graph.plan(3, 0.5).lines()}
    assert not graph.effects and "LOOP" in kinds


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 5e-324, 1.7e308])
def test_special_numbers(value):
    for program in (sums, arithmetic, functions):
        assert outcome(SCRIPTED[program], 6, value)[:1] == outcome(program, 6, value)[:1]


@pytest.mark.parametrize("what", ["numbers", "tensors"])
def test_endless_loops_can_be_interrupted(what):
    def numbers(x: int):
        i = 0
        while x > 0:
            i = (i + 1) % 7
        return i

    def tensors(x: tg.Tensor):
        while bool(x.sum() > 0):
            x = x * 1
        return x

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    program = jit.script(numbers if what == "numbers" else tensors)
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Stop):
            program(1 if what == "numbers" else tg.ones(2))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def steps(y: tg.Tensor, w: tg.Tensor, dt: float, n: int):
    for _i in range(n):
        k = tg.tanh(y @ w)
        y = y + tg.tanh((y + k * (0.5 * dt)) @ w) * dt
    return y


def test_the_body_of_a_loop_is_planned_once():
    graph = jit.script(steps).graph
    for n in (5, 0, 20):
        args = [tg.randn(2, 3), tg.randn(3, 3), 0.1, n]
        assert tg.equal(graph.execute(args)[0][0], steps(*args))
    assert len(graph.executor.misses) == 1 and "LOOP" in {line.kind for line in graph.plan(*args).lines()}


def test_what_depends_on_another_number_in_each_turn_is_not_planned_anew_for_each():
    def rows(x: tg.Tensor):
        s = tg.zeros(x.size(1))
        for i in range(x.size(0)):
            s = (s + x[i] * 2).tanh()
        return s

    graph = jit.script(rows).graph
    for _ in range(2):
        x = tg.randn(50, 3)
        assert tg.equal(graph.execute([x])[0][0], rows(x))
    assert len(graph.executor.misses) < 12


def test_sizes_that_change_from_turn_to_turn():
    def double(x: tg.Tensor, n: int):
        for _i in range(n):
            x = tg.cat((x, x * 2))
        return x

    graph = jit.script(double).graph
    for n in (1, 4, 2):
        x = tg.randn(3)
        assert tg.equal(graph.execute([x, n])[0][0], double(x, n))


def test_errors_within_loops_name_the_line():
    def program(x: tg.Tensor, n: int):
        for i in range(n):
            if i == 2:
                x = x @ x  # the faulty one
            else:
                x = x + 1
        return x

    scripted = jit.script(program)
    assert scripted(tg.ones(3), 2).tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match=r"test_steps.py:\d+ in program"):
        scripted(tg.ones(2, 3), 3)


def test_several_threads_run_one_loop():
    from concurrent.futures import ThreadPoolExecutor

    graph = jit.script(steps).graph
    cases = [[tg.randn(2, 3), tg.randn(3, 3), 0.1, n] for n in range(40)]
    expected = [interpret.run(graph, case)[0][0] for case in cases]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda case: graph.execute(case)[0][0], cases))
    assert all(map(tg.equal, found, expected))


def test_a_list_that_is_longer_than_the_graph_names_is_read_as_by_the_interpreter():
    text = "graph f(%x: List[Tensor]) {\n  %1: Tensor, %2: Tensor = prim::unpack(%x)\n  return %1, %2\n}"
    graph = Graph.parse(text).check()
    for n in (2, 3, 500):
        xs = [tg.full((1,), float(i)) for i in range(n)]
        for _ in range(2):
            assert (
                [t.item() for t in graph.execute([xs])[0]]
                == [t.item() for t in interpret.run(graph, [xs])[0]]
                == [0, 1]
            )


def test_a_step_may_read_hundreds_of_values():
    names = [f"%x{i}" for i in range(600)]
    inputs = ", ".join(f"{n}: Tensor" for n in names)
    body = "  %l: List[Tensor] = aten::unbind.int(%x0, 0)\n  %1: Tensor = aten::nonzero(%x0)\n"
    body += f"  %2: Tensor = aten::cat([{', '.join(names)}], 0)\n"
    graph = Graph.parse(f"graph f({inputs}) {{\n{body}  return %1, %2\n}}").check()
    xs = [tg.ones(1) for _ in names]
    for _ in range(3):
        assert graph.execute(xs)[0][1].shape == (600,)
