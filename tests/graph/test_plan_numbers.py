"""Arithmetic with numbers inside plans: Python's values and errors."""

import math

import pytest

import tinygrad_ext as tg
from tests.helpers.plans import graph, line, same
from tinygrad_ext import jit
from tinygrad_ext.graph import planning

INTS = ("add", "sub", "mul", "floordiv", "mod", "max", "min", "bitand", "bitor", "bitxor", "rshift", "lshift", "pow")
FLOATS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "max", "min")
TESTS = ("lt", "le", "gt", "ge", "eq", "ne")
MATH = ("sqrt", "exp", "log", "sin", "tanh", "floor", "ceil", "trunc", "fabs", "isnan", "isinf", "erf")
EDGES = [0, 1, -1, 2, 7, -3, 63, 2**31, 2**53 + 1, 2**62, -(2**63), 2**63 - 1]
REALS = [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, -3.0, 2.5, 1e300, -1e-300, 1e18, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("op", sorted({*INTS, *FLOATS, *TESTS}))
def test_arithmetic_is_python_s(op):
    for kinds in ("int int", "int float", "float int", "float float"):
        if op in INTS and op not in FLOATS and kinds != "int int":
            continue
        a, b = kinds.split()
        result = "bool" if op in TESTS else "float" if "float" in kinds or op == "truediv" else "int"
        g = line([f"{result} = prim::{op}(%a, %b)"], f"%a: {a}, %b: {b}")
        for x in EDGES if a == "int" else REALS:
            for y in EDGES if b == "int" else REALS:
                if (op == "pow" and b == "int" and y > 2**20) or (op == "lshift" and y > 2**20):
                    continue  # more memory than there is
                same(g, x, y)
        assert not g.executor.boxed


@pytest.mark.parametrize("op", ["neg", "abs", "int", "float", "bool", "not", "round", *(f"math.{m}" for m in MATH)])
def test_functions_of_a_number_are_python_s(op):
    for kind, values in (("int", EDGES), ("float", REALS)):
        g = line([f"{_result(op, kind)} = prim::{op}(%a)"], f"%a: {kind}")
        for value in values:
            same(g, value)
        assert not g.executor.boxed


def _result(op, kind):
    if op in ("not", "bool") or op.startswith("math.is"):
        return "bool"
    if op in ("int", "round", "math.floor", "math.ceil", "math.trunc"):
        return "int"
    return kind if op in ("neg", "abs") else "float"


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_the_length_of_a_range(step):
    g = line([f"int = prim::range_length(%a, %b, {step})"], "%a: int, %b: int")
    for a in (-5, 0, 3):
        for b in (-7, 0, 4, 9):
            same(g, a, b)


def test_an_int_of_more_than_64_bits_is_an_int_all_the_same():
    g = graph("""\
graph f(%n: int) {
  %1: int = prim::Loop(%n, True, 1) {
    block(%i: int, %p: int) {
      %2: int = prim::mul(%p, 10)
      yield True, %2
    }
  }
  return %1
}""")
    for n in (3, 18, 19, 40):
        assert g.execute([n])[0] == [10**n]
    assert len(g.executor.misses) == 1


def test_a_plan_that_overflows_leaves_more_and_more_calls_to_the_interpreter():
    def power(n: int):
        made = 1
        for _ in range(n):
            made = made * 3
        return made % 1000003

    scripted = jit.script(power)
    run = scripted.graph.executor
    for count in range(1, 8):
        assert scripted(100) == power(100) and run.overflows == count
    (routine,) = run.whole.runner.routines
    assert routine.rests == 7  # tried at the first, third and seventh call
    assert [scripted(n) for n in range(8)] == [power(n) for n in range(8)]
    assert routine.rests == 0 and "calls by the interpreter: a number has more than 64 bits" in run.explain()


def test_a_program_that_raises_is_not_held_against_its_plan():
    def quotient(a: int, b: int):
        return a // b

    scripted = jit.script(quotient)
    scripted(4, 2)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            scripted(1, 0)
    assert scripted.graph.executor.whole.runner.routines[0].rests == 0


def test_numbers_and_jumps_are_profiled_together():
    def count(x, n: int):
        total = 0
        for i in range(n):
            total += i * i
        return x + total

    plan = jit.script(count).graph.plan(tg.ones(2), 5)
    (total,) = [text for text in plan.table(profile=True).split("\n") if "numbers, jumps and pointers" in text]
    assert float(total.split()[0]) >= 0
    assert all(line.microseconds == 0 for line in plan.lines(profile=True) if line.kind in ("NUMBER", "LOOP"))
    assert "all together" not in plan.table()


# ---- what has to be known before the run -----------------------------------------------------------------------------

KNOWN_BEFORE = {
    "of an op": (["%0: Tensor = aten::sum.dim_IntList(%x, %n, False, None)"], {1}),
    "in a list": (["%0: Tensor = aten::permute(%x, [%n, %m])"], {1, 2}),
    "by arithmetic": (["%1: int = prim::add(%n, %m)", "%0: Tensor = aten::unsqueeze(%x, %1)"], {1, 2}),
    "of a guard": (
        ["%1: bool = prim::le(%n, 9)", 'prim::guard(%1, True, "here")', "%0: Tensor = aten::neg(%x)"],
        {1},
    ),
    "none of a pointwise op": (
        ["%1: Tensor = aten::mul.Tensor(%x, %n)", "%0: Tensor = aten::add.Tensor(%1, %m, 1)"],
        set(),
    ),
    "none of a pick": (["%0: Tensor = aten::select.int(%x, 0, %n)"], set()),
}


@pytest.mark.parametrize("name", KNOWN_BEFORE)
def test_what_has_to_be_known_before_the_run_is_seen_before_it_is_lowered(name, monkeypatch):
    lines, wanted = KNOWN_BEFORE[name]
    g = graph("\n  ".join(["graph f(%x: Tensor, %n: int, %m: int) {", *lines, "return %0"]) + "\n}")
    assert planning.needed_by_value(g.nodes, g.inputs) == wanted
    made, lowering = [], planning.Lowering
    monkeypatch.setattr(planning, "Lowering", lambda: made.append(lowering()) or made[-1])
    same(g, tg.arange(4).reshape(2, 2).float(), 0, 1)
    assert len(made) == 1  # it was not begun anew
    same(g, tg.arange(4).reshape(2, 2).float(), 1, 0)
    assert len(made) == (2 if wanted else 1)
