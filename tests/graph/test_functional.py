"""Lists, dicts and objects that only the graph knows are changed without an effect; what others may hold keeps it."""

import pytest

import tinygrad_ext as tg
from tests.helpers import script_programs as table
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph, passes

# what these programs change is an argument, a tensor from outside, lies in another object, or is a grad mode that they
# ask tensors about
KEEP = {
    "algorithms": ["bubble_sort"],
    "calls": ["grad_inside_of_no_grad", "with_an_object", "with_in_a_loop", "without_grad"],
    "classes": ["counter", "dataclasses_with_init_vars", "nested_objects", "objects_are_references",
                "objects_as_arguments", "objects_in_branches"],
    "containers": ["dict_methods", "dict_of_tensors", "list_assignments", "list_methods", "list_sort", "nested_lists",
                   "references"],
    "tensors": ["aliases", "in_place_in_a_loop", "in_place_methods", "out_that_cannot_be_written",
                "results_go_into_out"],
}  # fmt: skip


def functional(text):
    return str(passes.Functional().run(Graph.parse(text)).check())


@pytest.mark.parametrize("stem", table.FILES)
def test_programs_without_effects_on_others_have_none(stem):
    cases = table.load(stem, tg)
    assert sorted(n for n, case in cases.items() if jit.script(case.function).graph.effects) == KEEP.get(stem, [])


def test_changes_go_through_branches_and_loops():
    text = """\
graph f(%n: int, %more: bool) effects {
  %l: List[int] = prim::list(%n)
  prim::Loop(%n, True) {
    block(%i: int) {
      prim::If(%more) {
        block() {
          prim::list.append(%l, %i)
          yield
        }
        block() {
          yield
        }
      }
      yield True
    }
  }
  %p: int = prim::list.pop(%l, 0)
  return %l, %p
}"""
    assert (
        functional(text)
        == """\
graph f(%n: int, %more: bool) {
  %l: List[int] = prim::list(%n)
  %1: List[int] = prim::own(%l)
  %5: List[int] = prim::Loop(%n, True, %1) {
    block(%i: int, %2: List[int]) {
      %4: List[int] = prim::If(%more) {
        block() {
          %3: List[int] = prim::list.appended(%2, %i)
          yield %3
        }
        block() {
          yield %2
        }
      }
      yield True, %4
    }
  }
  %p: int, %6: List[int] = prim::list.popped(%5, 0)
  return %6, %p
}"""
    )


ESCAPES = {
    "argument": "graph f(%l: List[int]) effects {\n  prim::list.append(%l, 1)\n  return %l\n}",
    "put into another before": """\
graph f() effects {
  %l: List[int] = prim::list(1)
  %o: List[List[int]] = prim::list(%l)
  prim::list.append(%l, 2)
  return %o
}""",
    "put into another on the turn before": """\
graph f(%o: List[List[int]]) effects {
  %l: List[int] = prim::list(1)
  %r: List[List[int]] = prim::Loop(3, True, %o) {
    block(%i: int, %a: List[List[int]]) {
      %2: int = prim::list.pop(%l, -1)
      %3: List[List[int]] = prim::list(%l)
      yield True, %3
    }
  }
  return %r
}""",
    "taken out of another": """\
graph f(%o: List[List[int]]) effects {
  %l: List[int] = prim::getitem(%o, 0)
  prim::list.clear(%l)
  return %o
}""",
    "one of two": """\
graph f(%c: bool) effects {
  %a: List[int] = prim::list(1)
  %b: List[int] = prim::If(%c) {
    block() {
      yield %a
    }
    block() {
      %d: List[int] = prim::list(2)
      yield %d
    }
  }
  prim::list.append(%a, 3)
  return %a, %b
}""",
    "one effect stays": """\
graph f(%x: Tensor) effects {
  %l: List[int] = prim::list(1)
  prim::list.append(%l, 2)
  %1: Tensor = aten::add_.Tensor(%x, 1, 1)
  return %l
}""",
}


@pytest.mark.parametrize("case", ESCAPES)
def test_what_others_may_hold_stays_as_it_is(case):
    assert functional(ESCAPES[case]) == ESCAPES[case]


def test_equal_objects_stay_two():
    @jit.script
    def program(n: int):
        a, b = [0], [0]
        for i in range(n):
            a.append(i)
        return a, b

    graph = passes.optimize(program.graph.copy())
    for call in (program, lambda n: graph.executor(n)[0]):
        assert call(2) == ([0, 0, 1], [0]) and call(1) == ([0, 0], [0])


def test_what_raises_and_speaks_keeps_its_place(capsys):
    @jit.script
    def program(x, n: int):
        print("first")
        assert n > 0, "too small"
        print("then", n)
        y = x.reshape(n, 2)
        print("last")
        return y

    graph = passes.optimize(program.graph.copy())
    assert not graph.effects
    for call in (program, lambda *row: graph.executor(*row)[0]):
        for _ in range(2):
            assert call(tg.zeros(4), 2).shape == (2, 2)
        assert capsys.readouterr().out == "first\nthen 2\nlast\n" * 2
        with pytest.raises(AssertionError, match="too small"):
            call(tg.zeros(4), 0)
        assert capsys.readouterr().out == "first\n"
        with pytest.raises(RuntimeError):
            call(tg.zeros(4), 3)
        assert capsys.readouterr().out == "first\nthen 3\n"
