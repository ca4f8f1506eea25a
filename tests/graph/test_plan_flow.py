"""Branches, loops and numbers inside plans: the interpreter's values to the bit, its errors, and what is refused."""

import random
import signal
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tests.helpers.plans import agree, graph, indented, same

INTS = ("add", "sub", "mul", "floordiv", "mod", "max", "min", "bitand", "bitor", "bitxor", "rshift", "lshift", "pow")
FLOATS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "max", "min")
TESTS = ("lt", "le", "gt", "ge", "eq", "ne")


# ---- random programs -----------------------------------------------------------------------------------------------


class Program:
    """The text of a random graph: numbers, tensors of three elements, branches and loops within each other."""

    def __init__(self, seed):
        self.draw, self.count = random.Random(seed), 0
        scope = {"int": ["%a", "%b"], "float": ["%f"], "bool": ["%t"], "Tensor": ["%x", "%y"]}
        lines, scope = self.block(scope, 3, 6)
        results = ", ".join(self.draw.choice(scope[kind]) for kind in scope)
        inputs = "%a: int, %b: int, %f: float, %t: bool, %x: Tensor, %y: Tensor"
        self.text = f"graph f({inputs}) {{\n" + "\n".join(lines) + f"\n  return {results}\n}}"

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def pick(self, scope, kind):
        if kind in ("int", "float") and self.draw.random() < 0.3:
            return str(self.draw.choice([0, 1, 2, 3, -2]) if kind == "int" else self.draw.choice([0.5, 1.5, -2.0, 0.1]))
        return self.draw.choice(scope[kind])

    def block(self, scope, depth, most):
        scope, lines = {kind: list(names) for kind, names in scope.items()}, []
        for _ in range(self.draw.randint(1, most)):
            lines += self.statement(scope, depth)
        return lines, scope

    def statement(self, scope, depth):
        draw, pick = self.draw, lambda kind: self.pick(scope, kind)
        which = draw.randint(0, 9 if depth else 7)
        if which > 7:
            return self.branch(scope, depth) if which == 8 else self.loop(scope, depth)
        kind, op = (
            ("int", f"prim::{draw.choice(INTS[:7])}({pick('int')}, {pick('int')})"),
            ("float", f"prim::{draw.choice(FLOATS[:4])}({pick('float')}, {pick(draw.choice(['int', 'float']))})"),
            ("bool", f"prim::{draw.choice(TESTS)}({pick('int')}, {pick('float')})"),
            ("bool", f"prim::not({pick('bool')})"),
            ("Tensor", f"aten::mul.Tensor({pick('Tensor')}, {pick(draw.choice(['int', 'float', 'Tensor']))})"),
            ("Tensor", f"aten::add.Tensor({pick('Tensor')}, {pick('Tensor')}, {pick('int')})"),
            ("Tensor", f"aten::softmax.int({pick('Tensor')}, 0, None)"),
            ("float", None),
        )[which]
        name = self.name()
        if op is None:
            part = self.name()
            scope["float"].append(name)
            return [
                f"  {part}: Tensor = aten::select.int({pick('Tensor')}, 0, {pick('int')})",
                f"  {name}: float = prim::item({part})",
            ]
        scope[kind].append(name)
        return [f"  {name}: {kind} = {op}"]

    def branch(self, scope, depth):
        kinds = self.draw.sample(sorted(scope), self.draw.randint(1, 4))
        outputs = ", ".join(f"{self.name()}: {kind}" for kind in kinds)
        lines = [f"  {outputs} = prim::If({self.draw.choice(scope['bool'])}) {{"]
        for _ in range(2):
            inner, names = self.block(scope, depth - 1, 4)
            lines += ["block() {", *inner, "yield " + ", ".join(self.pick(names, kind) for kind in kinds), "}"]
        self.add(scope, outputs)
        return [*lines, "}"]

    def loop(self, scope, depth):
        kinds = [self.draw.choice(sorted(scope)) for _ in range(self.draw.randint(1, 4))]
        outputs = ", ".join(f"{self.name()}: {kind}" for kind in kinds)
        inputs = ", ".join(f"{self.name()}: {kind}" for kind in kinds)
        first = ", ".join(self.pick(scope, kind) for kind in kinds)
        turn, inner_scope = self.name(), {kind: list(names) for kind, names in scope.items()}
        self.add(inner_scope, f"{turn}: int, {inputs}")
        inner, names = self.block(inner_scope, depth - 1, 4)
        goes_on = self.draw.choice(["True", "True", self.draw.choice(names["bool"])])
        new = ", ".join([goes_on, *(self.pick(names, kind) for kind in kinds)])
        count = self.draw.choice(["3", "5", "%b"])
        begin = self.draw.choice(["True", self.draw.choice(scope["bool"])])
        self.add(scope, outputs)
        head = f"  {outputs} = prim::Loop({count}, {begin}, {first}) {{"
        return [head, f"block({turn}: int, {inputs}) {{", *inner, f"yield {new}", "}", "}"]

    def add(self, scope, declared):
        for part in declared.split(", "):
            name, kind = part.split(": ")
            scope[kind].append(name)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_random_programs_agree_to_the_bit(seed):
    g, draw = graph(indented(Program(seed).text)), random.Random(seed)
    for _ in range(3):
        x, y = (tg.tensor([draw.uniform(-2, 2) for _ in range(3)]) for _ in "xy")
        same(g, draw.randint(-4, 4), draw.randint(0, 4), draw.uniform(-2, 2), draw.random() < 0.5, x, y)
    assert not g.executor.boxed or all(
        any(word in why for word in ("way", "out of range", "side by side", "elements"))
        for why in g.executor.boxed.values()
    )


# ---- what a loop carries -------------------------------------------------------------------------------------------


def loop(body, carried, inputs="%n: int, %x: Tensor, %y: Tensor"):
    """carried: (name: type, what it is first) for each; body ends in `yield`."""
    made = ", ".join(f"%r{i}: {name.split(': ')[1]}" for i, (name, _) in enumerate(carried))
    first = ", ".join(value for _, value in carried)
    names = ", ".join(name for name, _ in carried)
    lines = "\n".join(body)
    results = ", ".join(f"%r{i}" for i in range(len(carried)))
    text = f"""\
graph f({inputs}) {{
  {made} = prim::Loop(%n, True, {first}) {{
    block(%i: int, {names}) {{
{lines}
    }}
  }}
  return {results}
}}"""
    return graph(indented(text))


def planned(g):
    return not g.executor.boxed and [part for part in g.executor.parts if not hasattr(part, "runner")] == []


def test_carried_values_may_change_places():
    g = loop(
        ["yield True, %b, %a, %q, %p"], [("%a: Tensor", "%x"), ("%b: Tensor", "%y"), ("%p: int", "1"), ("%q: int", "2")]
    )
    for n in range(4):
        agree(g, n, tg.randn(4), tg.randn(4))
    assert planned(g)


def test_a_division_by_zero_is_an_error_where_the_run_comes_by_it():
    body = ["%s: int = prim::mod(%p, 0)", "%t: int = prim::add(%s, 1)", "yield True, %t"]
    g = loop(["%s: int = prim::mod(7, 0)", *body[1:]], [("%p: int", "1")])
    assert g.execute([0, tg.zeros(1), tg.zeros(1)])[0] == [1] and planned(g)
    for text in (g, loop(body, [("%p: int", "1")])):
        with pytest.raises(ZeroDivisionError):
            text.execute([1, tg.zeros(1), tg.zeros(1)])


def test_a_view_of_what_is_carried_is_carried():
    body = ["%t: Tensor = aten::t(%a)", "%s: Tensor = aten::add.Tensor(%b, %t, 1)", "yield True, %s, %a"]
    g = loop(body, [("%a: Tensor", "%x"), ("%b: Tensor", "%y")])
    for n in range(4):
        agree(g, n, tg.randn(3, 3), tg.randn(3, 3))
    assert planned(g)


def test_a_trip_reads_its_part_of_a_sequence():
    body = ["%s: Tensor = aten::select.int(%x, 1, %i)", "%h: Tensor = aten::mul.Tensor(%a, %s)", "yield True, %h"]
    g = loop(body, [("%a: Tensor", "%y")])
    for n in range(6):
        agree(g, n, tg.randn(3, 5, 2), tg.randn(3, 2))
        agree(g, n, tg.randn(2, 5, 3).transpose(0, 2), tg.randn(3, 2))
    assert planned(g)
    with pytest.raises(IndexError):
        g.execute([6, tg.randn(3, 5, 2), tg.randn(3, 2)])


def test_an_input_that_is_carried_is_not_written_to():
    g = loop(["%b: Tensor = aten::add.Tensor(%a, 1, 1)", "yield True, %b"], [("%a: Tensor", "%x")])
    x = tg.zeros(3)
    assert g.execute([2, x, x])[0][0].tolist() == [2, 2, 2] and x.tolist() == [0, 0, 0]
    (first,), _ = g.execute([2, x, x])
    g.execute([3, x, x])
    assert first.tolist() == [2, 2, 2]


def test_what_stood_before_a_loop_is_there_in_each_trip():
    text = """\
graph f(%x: Tensor, %n: int) {
  %1: Tensor = aten::softmax.int(%x, 0, None)
  %r: Tensor = prim::Loop(%n, True, %x) {
    block(%i: int, %a: Tensor) {
      %2: Tensor = aten::softmax.int(%a, 0, None)
      %3: Tensor = aten::cumsum(%2, 0, None)
      %4: Tensor = aten::mul.Tensor(%3, %1)
      yield True, %4
    }
  }
  return %r
}"""
    g = graph(text)
    for n in range(4):
        agree(g, tg.randn(6, 5), n)
    assert planned(g)


def test_draws_in_a_loop_go_on_from_each_other():
    text = """\
graph f(%x: Tensor, %n: int) {
  state %g: Generator = generator "g"
  %r: Tensor, %h: Generator = prim::Loop(%n, True, %x, %g) {
    block(%i: int, %a: Tensor, %k: Generator) {
      %1: Tensor, %l: Generator = aten::bernoulli.p(%a, 0.5, %k)
      %2: Tensor = aten::add.Tensor(%a, %1, 1)
      yield True, %2, %l
    }
  }
  return %r
  write "g" = %h
}"""
    g = graph(text)
    for n in range(4):
        agree(g, tg.randn(6, 5), n, state=[tg.Generator().manual_seed(3)])
    assert planned(g)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (["%b: Tensor = aten::cat([%a, %a], 0)", "yield True, %b"], "sizes"),
        (["%b: Tensor = aten::t(%a)", "yield True, %b"], "strides"),
        (["%b: Tensor = aten::narrow(%a, 0, 0, %i)", "yield True, %a"], "changes in a loop"),
        (["%b: Tensor = aten::nonzero(%a)", "yield True, %a"], "depends on elements"),
    ],
)
def test_what_has_no_one_geometry_is_the_interpreter_s(body, why):
    g = loop(body, [("%a: Tensor", "%x")])
    agree(g, 2, tg.ones(2, 3), tg.ones(1))
    assert why in g.explain()


def test_branches_that_disagree_are_the_interpreter_s():
    g = graph("""\
graph f(%x: Tensor, %n: int) {
  %c: bool = prim::gt(%n, 2)
  %1: Tensor = prim::If(%c) {
    block() {
      %2: Tensor = aten::sum.dim_IntList(%x, [0], False, None)
      yield %2
    }
    block() {
      yield %x
    }
  }
  return %1
}""")
    agree(g, tg.randn(2, 3), 1)
    agree(g, tg.randn(2, 3), 5)
    assert "a tensor has sizes [3]" in g.explain()


# ---- errors, interruption, threads ---------------------------------------------------------------------------------

DIVIDES = """\
graph f(%n: int, %x: Tensor) {
  %1: int = prim::Loop(%n, True, 5) {
    block(%i: int, %a: int) {
      %2: int = prim::floordiv(10, %a)  # model.py:7 in forward
      %3: int = prim::sub(%a, 1)
      yield True, %3
    }
  }
  return %1
}"""


def test_an_error_inside_a_loop_names_the_user_s_line():
    g = graph(DIVIDES)
    agree(g, 5, tg.zeros(1))
    assert planned(g)
    with pytest.raises(ZeroDivisionError, match=r"model.py:7 in forward"):
        g.execute([6, tg.zeros(1)])


def test_a_program_that_may_raise_is_planned_and_raises_what_it_says():
    g = graph("""\
graph f(%x: Tensor, %n: int) effects {
  %1: bool = prim::gt(%n, 3)
  prim::If(%1) {
    block() {
      %2: str = prim::format("{} is too much", %n)
      prim::raise("ValueError", %2)  # model.py:3 in forward
      yield
    }
    block() {
      yield
    }
  }
  %3: Tensor = aten::mul.Tensor(%x, %n)
  return %3
}""")
    agree(g, tg.ones(2), 3)
    assert planned(g) and not g.executor.one_by_one
    with pytest.raises(ValueError, match="4 is too much"):
        g.execute([tg.ones(2), 4])


ENDLESS = """\
graph f(%x: Tensor) {
  %1: int = prim::Loop(None, True, 0) {
    block(%i: int, %a: int) {
      %2: int = prim::bitxor(%a, %i)
      yield True, %2
    }
  }
  return %1
}"""


def test_an_endless_loop_is_interrupted_and_the_graph_runs_on():
    class Stop(Exception):
        pass

    def stop(number, frame):
        raise Stop

    g = graph(ENDLESS)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Stop):
            g.execute([tg.zeros(1)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_loops_of_several_threads_do_not_meet():
    g = loop(["%b: Tensor = aten::add.Tensor(%a, %i, 1)", "yield True, %b"], [("%a: Tensor", "%x")])
    found = [None] * 4

    def run(k):
        found[k] = [g.execute([n, tg.zeros(3), tg.zeros(1)])[0][0][0].item() for n in range(k, k + 40)]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[n * (n - 1) / 2 for n in range(k, k + 40)] for k in range(4)]


def test_the_table_names_branches_loops_and_numbers():
    g = graph(DIVIDES)
    assert [row.kind for row in g.plan(3, tg.zeros(1)).lines()].count("LOOP") == 1
    assert "floordiv" in g.plan(3, tg.zeros(1)).table()


@pytest.mark.parametrize("rows", [1, 3, 51, 52, 300])
def test_groups_of_few_and_of_many_elements_read_what_lies_in_any_way(rows):
    g = graph(
        "graph f(%x: Tensor, %y: Tensor, %z: Tensor, %n: int) {\n"
        "  %r: Tensor = prim::Loop(%n, True, %x) {\n    block(%i: int, %c: Tensor) {\n"
        "      %1: Tensor = aten::mul.Tensor(%c, %y)\n      %2: Tensor = aten::sin(%1)\n"
        "      %3: Tensor = aten::add.Tensor(%2, %z, %i)\n      %4: Tensor = aten::gt.Tensor(%3, 0.5)\n"
        "      %5: Tensor = aten::where.self(%4, %3, %c)\n      yield True, %5\n    }\n  }\n  return %r\n}"
    )
    x, turned = tg.randn(rows, 5), tg.randn(5, rows).t()
    for y, z in ((turned, tg.randn(5)), (tg.randn(rows, 1), turned), (tg.randn(()), tg.randn(rows, 10)[:, ::2])):
        agree(g, x, y, z, 3)
        agree(g, x.double(), y, z, 3)
