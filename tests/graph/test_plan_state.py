"""Numbers that follow from elements, and states that are updated where they lie."""

import pytest

import tinygrad_ext as tg
from tests.helpers.graphs import same_bits
from tests.helpers.plans import agree, graph, line
from tinygrad_ext.graph import interpret
from tinygrad_ext.graph.plan import Executor

# ---- numbers that follow from elements -----------------------------------------------------------------------------


def test_a_number_read_from_an_element_stays_in_the_plan():
    body = [
        "Tensor = aten::add.Tensor(%x, 1, 1)",
        "Scalar = aten::item(%0)",
        "float = prim::pow(0.5, %1)",
        "float = prim::sub(1, %2)",
        "Tensor = aten::div.Tensor(%y, %3)",
        "Tensor = aten::add.Tensor(%4, %y, %2)",
        "float = prim::item(%x)",
        "Tensor = aten::mul.Tensor(%5, %6)",
    ]
    g = line(body, "%x: Tensor, %y: Tensor", "%7, %3")
    for value in (0.0, 1.0, 7.5):
        agree(g, tg.tensor(value), tg.randn(100))
    assert not g.executor.boxed and len(g.executor.misses) == 1


def test_a_number_of_another_type_than_planned_is_computed_by_the_interpreter():
    body = ["Scalar = aten::item(%n)", "float = prim::pow(2, %0)", "Tensor = aten::mul.Tensor(%x, %1)"]
    g = line(body, "%n: Tensor, %x: Tensor")
    for n in (3, -2, 0):
        agree(g, tg.tensor(n), tg.ones(2))
    assert len(g.executor.misses) == 1


def test_a_number_that_raises_raises_at_the_user_s_line():
    body = ["Scalar = aten::item(%x)", "float = prim::truediv(1, %0)", "Tensor = aten::mul.Tensor(%x, %1)"]
    g = line(body)
    agree(g, tg.tensor(4.0))
    g.nodes[1].line = "model.py:5 in forward"
    with pytest.raises(ZeroDivisionError, match=r"model.py:5 in forward"):
        g.execute([tg.tensor(0.0)])


def test_sizes_that_follow_from_an_element_are_the_interpreter_s():
    body = ["Scalar = aten::item(%n)", "int = prim::int(%0)", "Tensor = aten::narrow(%x, 0, 0, %1)"]
    g = line(body, "%n: Tensor, %x: Tensor")
    for n in (3, 2):
        agree(g, tg.tensor(n), tg.randn(5))
    assert [node.op for node in g.executor.boxed] == ["aten::narrow"]


# ---- states that are updated where they lie ------------------------------------------------------------------------

STEP = """\
graph step(%x: Tensor) {
  state %w: Tensor = parameter "w"
  state %v: Tensor = buffer "v"
  state %n: Tensor = buffer "n"
  %1: Tensor = aten::mul.Tensor(%w, %x)
  %2: Tensor = aten::sum.dim_IntList(%1, [0], False, None)
  %3: Tensor = aten::add.Tensor(%n, 1, 1)
  %4: Tensor = aten::t(%w)
  return %2, %w
  write "w" = %v
  write "v" = %4
  write "n" = %3
}"""


@pytest.mark.parametrize("boxed", [False, True])
def test_new_states_are_written_to_the_old_ones_when_all_else_is_done(boxed):
    """Two states change places, one of them turned: neither is read after it was written to."""
    g = graph(STEP)
    executor = Executor(g, updates=[0, 1, 2])
    if boxed:
        executor.box(executor.whole, [g.nodes[1]], "for the test")
    w, v, n, x = tg.randn(3, 3), tg.randn(3, 3), tg.tensor(0), tg.randn(3)
    w.requires_grad_()
    for _ in range(3):
        before, state = w._version, [w.detach().clone(), v.clone(), n.clone()]
        (total, shown), new = interpret.run(g, [x], state)
        new = [t.contiguous() for t in new]  # a state keeps its layout
        results = executor(x, w, v, n)
        assert same_bits(results[0], total) and results[1] is w
        assert results[2] is w and results[3] is v and results[4] is n
        assert same_bits([w.detach(), v, n], new) and w._version > before and w.is_leaf


def test_a_state_that_does_not_fit_is_returned_instead():
    text = 'graph f(%x: Tensor) {\n  state %w: Tensor = buffer "w"\n  return %x\n  write "w" = %x\n}'
    executor = Executor(graph(text), updates=[0])
    w, x = tg.zeros(2), tg.ones(3)
    assert executor(x, w)[1] is x and w.tolist() == [0, 0]


def test_a_state_that_may_not_be_written_to_is_refused_before_anything_is_changed():
    text = 'graph f(%x: Tensor) {\n  state %w: Tensor = buffer "w"\n  return %x\n  write "w" = %x\n}'
    executor = Executor(graph(text), updates=[0])
    with pytest.raises(RuntimeError, match="more than one element"):
        executor(tg.ones(3), tg.zeros(1).expand(3))
