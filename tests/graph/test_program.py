"""A program's methods share one state, which a call updates as eager mode would."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.graph import Graph, Program

SWAP = """\
graph swap() {
  state %a: Tensor = buffer "a"
  state %b: Tensor = buffer "b"
  return %a
  write "a" = %b
  write "b" = %a
}"""
DRAW = """\
graph draw(%x: Tensor) {
  state %g: Generator = generator "default"
  state %n: int = number "n"
  %1: Tensor, %h: Generator = aten::bernoulli(%x, %g)
  %2: int = prim::add(%n, 1)
  return %1, %2
  write "default" = %h
  write "n" = %2
}"""
GROW = """\
graph grow(%x: Tensor) {
  state %a: Tensor = buffer "a"
  %1: Tensor = aten::cat([%a, %x], 0)
  return
  write "a" = %1
}"""


def test_state_is_written_in_place_and_what_was_returned_stays():
    a, b = tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])
    program = Program({"swap": Graph.parse(SWAP)}, {"a": a, "b": b})
    before = program.run("swap")
    assert a.tolist() == [3.0, 4.0] and b.tolist() == [1.0, 2.0]
    assert before.tolist() == [1.0, 2.0]
    assert program.state["a"] is a


def test_random_numbers_come_from_the_generator_of_the_process_as_in_eager_mode():
    program, x = Program({"draw": Graph.parse(DRAW)}, {"n": 5}), tg.full((50,), 0.5)
    tg.manual_seed(7)
    found = [program.run("draw", x) for _ in range(2)]
    tg.manual_seed(7)
    assert [t.tolist() for t, _ in found] == [tg.bernoulli(x).tolist() for _ in range(2)]
    assert [n for _, n in found] == [6, 7] and program.state["n"] == 7


def test_a_state_that_grows_is_replaced():
    a = tg.ones(2)
    program = Program({"grow": Graph.parse(GROW)}, {"a": a})
    assert program.run("grow", tg.zeros(1)) is None
    assert program.state["a"].tolist() == [1.0, 1.0, 0.0] and a.tolist() == [1.0, 1.0]


def test_methods_share_the_state():
    program = Program({"swap": Graph.parse(SWAP), "grow": Graph.parse(GROW)}, {"a": tg.ones(1), "b": tg.zeros(1)})
    program.run("swap")
    program.run("grow", tg.ones(1))
    assert program.state["a"].tolist() == [0.0, 1.0]


def test_parameters_get_gradients():
    text = """\
graph f(%x: Tensor) {
  state %w: Tensor = parameter "w"
  %1: Tensor = aten::mul.Tensor(%x, %w)
  return %1
}"""
    w = tg.nn.Parameter(tg.ones(2))
    Program({"forward": Graph.parse(text)}, {"w": w})(tg.tensor([2.0, 3.0])).sum().backward()
    assert w.grad.tolist() == [2.0, 3.0]


def test_what_is_not_there_is_told():
    with pytest.raises(ValueError, match="method 'swap' has the buffer 'b', which is not in the state"):
        Program({"swap": Graph.parse(SWAP)}, {"a": tg.ones(1)})
    with pytest.raises(AttributeError, match="no method 'forward'; it has draw"):
        Program({"draw": Graph.parse(DRAW)}, {"n": 1})(tg.ones(1))
