"""What plans compute in machine code has the bits of the ops' loops, on each instruction set that is here."""

import itertools
import os
import subprocess
import sys

import pytest
from collecting import collect
from hypothesis import HealthCheck, given, settings
from tinygrad_ext.core.loops.loop_tables import formulas

import tinygrad_ext as tg
from tests.graph.test_plan import CHAIN
from tests.helpers.emitted import LEVELS, SPECIAL, check, comparable, made_with, run
from tests.helpers.emitted_programs import programs
from tests.helpers.graphs import graph_of_sample
from tests.helpers.plans import graph, line
from tinygrad_ext.graph import emission
from tinygrad_ext.testing import sweep

pytestmark = pytest.mark.skipif(not LEVELS, reason="nothing is emitted for this machine")
NAMES = {name for _, name in formulas().values()}
OPS = {op.name: op for op in sweep.ops() if op.name in NAMES}
NEVER = {"aten::gelu", "aten::gelu_backward"}  # of their cases none is plain arithmetic
LENGTHS = (None, 0, 1, 7, 17, 4097)


def pairs(dtype, count):
    """All pairs of special values, as so many columns."""
    rows = list(itertools.product(SPECIAL, repeat=2))
    if dtype == tg.bool:
        rows = [(x > 0, y > 0) for x, y in rows]
    columns = [[row[0] for row in rows], [row[1] for row in rows], [row[0] for row in rows[::-1]]]
    return [tg.tensor(column, dtype=dtype) for column in columns[:count]]


def alone(op):
    """(graph of a call of the op, its inputs) for each sample."""
    for dtype in ("float32", "float64"):
        for sample in sweep.samples(op, dtype) if dtype in sweep.supported(op) else ():
            found = graph_of_sample(op, sample)
            if found is not None:
                yield found


def columns(inputs, n):
    """Special values in the place of each input, n of them."""
    made = [pairs(t.dtype, 3)[i % 3] for i, t in enumerate(inputs)]
    return [t[tg.arange(n) * 7 % len(t)] if n is not None else t for t in made]


@pytest.mark.parametrize("name", sorted(OPS))
def test_an_op_alone_gives_its_loop_s_bits(name):
    emitted = False
    for g, inputs in alone(OPS[name]):
        emitted |= any(check(g, inputs, 1))
        if all(isinstance(t, tg.Tensor) for t in inputs):
            for n in LENGTHS:
                check(g, columns(inputs, n), 1)
    assert emitted == (name not in NEVER)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_expressions_give_the_loops_bits(program):
    check(*program)


def test_values_that_find_no_register_wait_on_the_stack():
    ops = [f"Tensor = aten::mul.Tensor(%x, {k + 1}.5)" for k in range(39)]
    ops += [f"Tensor = aten::sub.Tensor(%{38 if k == 1 else 37 + k}, %{39 - k}, 1)" for k in range(1, 40)]
    for n in (3, 16, 37):
        (runs,) = check(line(ops), [tg.randn(n)])
        assert [len(run) for run in runs] == [78]


def test_more_operands_than_registers_for_addresses_are_read_from_their_list():
    ops = [
        "Tensor = aten::add.Tensor(%x0, %x1, 1)",
        *(f"Tensor = aten::mul.Tensor(%{k}, %x{k + 2})" for k in range(18)),
    ]
    g = line(ops, ", ".join(f"%x{k}: Tensor" for k in range(20)))
    assert check(g, [tg.randn(21) for _ in range(20)]) != [[]]
    ops = ["Tensor = aten::neg(%x0)", *(f"Tensor = aten::where.self(%x{k + 1}, %{k}, %x0)" for k in range(18))]
    g = line(ops, ", ".join(f"%x{k}: Tensor" for k in range(19)), ", ".join(f"%{k}" for k in range(19)))
    assert check(g, [tg.randn(21), *(tg.randn(21) > 0 for _ in range(18))]) != [[]]


def test_an_op_that_has_to_keep_its_loop_stands_between_two_runs():
    body = [
        "aten::mul.Tensor(%x, %x)",
        "aten::neg(%0)",
        "aten::exp(%1)",
        "aten::add.Tensor(%2, %x, 1)",
        "aten::neg(%3)",
    ]
    runs = check(line([f"Tensor = {op}" for op in body]), [tg.randn(2100)])
    assert runs == [[["aten::mul.Tensor", "aten::neg"], ["aten::add.Tensor", "aten::neg"]]]


def test_ops_are_put_in_the_order_that_makes_the_longest_runs():
    (runs,) = check(graph(CHAIN), [tg.randn(3000), tg.randn(3000)])
    assert runs == [["aten::mul.Tensor", "aten::add.Tensor", "aten::mul.Tensor", "aten::sub.Tensor"]]


def test_a_table_shows_machine_code_in_brackets_and_explain_counts_it():
    with made_with(True):
        g = graph(CHAIN)
        text = g.plan(tg.randn(9), tg.randn(9)).table()
    assert "exp, tanh, [mul.Tensor, add.Tensor, mul.Tensor, sub.Tensor]" in text
    assert "machine code in 1 of 1 groups" in g.explain().splitlines()[0]
    with made_with(False):
        g = graph(CHAIN)
        assert "[" not in g.plan(tg.randn(9), tg.randn(9)).table()
    assert "machine code" not in g.explain()


# ---- where nothing can be emitted ------------------------------------------------------------------------------------


def test_a_plan_whose_memory_may_not_run_runs_the_loops():
    inputs = [tg.randn(2000), tg.randn(2000)]
    expected, _ = run(graph(CHAIN), inputs, False)
    found, runs = run(graph(CHAIN), inputs, "refused")
    assert runs == [[]] and list(map(comparable, found)) == list(map(comparable, expected))


SHOW = f"""
import sys
sys.path[:0] = {sys.path!r}
if len(sys.argv) > 1:  # let this process never make memory executable that it could write to
    import ctypes
    if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
        sys.exit("unsupported")
import tinygrad_ext as tg
from tests.graph.test_plan import CHAIN
from tests.helpers.plans import agree, graph
g = graph(CHAIN)
agree(g, tg.randn(3000), tg.randn(3000))
print(g.explain())
"""


def shown(*args, **env):
    done = subprocess.run([sys.executable, "-c", SHOW, *args], env=os.environ | env, capture_output=True, text=True)
    if "unsupported" in done.stderr:
        pytest.skip("the system knows no process that may not write code")
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "env", [{"TINYGRAD_EXT_EMIT": "0"}, {"TINYGRAD_EXT_ISA": "base"}], ids=["switched off", "old processor"]
)
def test_nothing_is_emitted_where_it_is(env):
    assert "for 1 row of nodes\n" in shown(**env)


def test_a_system_that_refuses_memory_that_runs_runs_the_loops():
    assert "for 1 row of nodes\n" in shown("refuse")


def test_code_goes_with_its_plan():
    collect()
    with made_with(True):
        before = emission.held()
        kept = [graph(CHAIN) for _ in range(5)]
        for g in kept:
            g.execute([tg.randn(5), tg.randn(5)])
        assert emission.held() > before
        del kept, g
        collect()
        assert emission.held() == before


def test_an_operand_may_be_written_over_by_the_run_that_reads_it_last():
    body = [
        "Tensor = aten::softmax.int(%x, 0, None)",
        "Tensor = aten::neg(%0)",
        "Tensor = aten::mul.Tensor(%1, %0)",
        "Tensor = aten::softmax.int(%2, 0, None)",
    ]
    g, x = line(body), tg.randn(1500, dtype=tg.float64)
    check(g, [x])
    (routine,) = g.plan(x).parts
    assert routine.arena_bytes < routine.sum_bytes


def test_numbers_of_a_call_are_read_by_code_anew():
    g = line(["Tensor = aten::mul.Tensor(%x, %n)", "Tensor = aten::add.Tensor(%0, %x, %n)"], "%x: Tensor, %n: float")
    x = tg.randn(20)
    with made_with(True):
        for n in (1.0, 2.0, -0.1):
            (found,), _ = g.execute([x, n])
            assert found.equal(x * n + n * x)
    assert len(g.executor.misses) == 1
