"""What planning a large graph costs: attempts, and rows that are cut again."""

import pytest

import tinygrad_ext as tg
from tests.helpers.plans import agree, graph
from tinygrad_ext.graph import cutting
from tinygrad_ext.graph.planning import Planner


@pytest.mark.parametrize("way, wanted", [("", 2), ("prim::max(%n{0}, 0)", 3)])
def test_sizes_that_are_needed_by_value_are_found_in_few_attempts(way, wanted, monkeypatch):
    """One attempt for each size would make the time of a plan quadratic. Those that an op is called with are seen
    before; what the first plan found of the others, the second knows."""
    count, attempts = 40, []
    size = "%m{0}" if way else "%n{0}"
    lines = [f"  %m{i}: int = {way.format(i)}" for i in range(count) if way]
    lines += [f"  %y{i}: Tensor = aten::expand(%x, [{size.format(i)}, 3], False)" for i in range(count)]
    text = f"graph f(%x: Tensor, {', '.join(f'%n{i}: int' for i in range(count))}) {{\n" + "\n".join(lines)
    g = graph(f"{text}\n  return {', '.join(f'%y{i}' for i in range(count))}\n}}")
    monkeypatch.setattr(cutting, "Planner", lambda row: attempts.append(row) or Planner(row))
    for sizes in (range(count), range(1, count + 1)):
        found, _ = g.execute([tg.randn(3), *sizes])
        assert [t.shape[0] for t in found] == list(sizes)
    assert len(attempts) == wanted


def test_a_row_that_is_split_leaves_the_others_as_they_are():
    """What no plan takes is found in one row after the other; those that were planned keep their plans."""
    lines = [f"  %y{i}: Tensor = aten::tanh(%x{i})\n  %x{i + 1}: Tensor = aten::nonzero(%y{i})" for i in range(30)]
    g = graph("graph f(%x0: Tensor) {\n" + "\n".join(lines) + "\n  return %x30\n}")
    for _ in range(2):
        agree(g, tg.ones(2))
    assert len(g.executor.boxed) == 30 and len(g.executor.misses) == 30


def test_what_no_plan_has_many_of_is_looked_for_once_in_a_row(monkeypatch):
    """An attempt for each would go through all nodes behind it each time. Those before it were planned, and stay so."""
    planned = "  %a: Tensor = aten::index_put(%x, [%at], %v, False)\n"
    lines = [f"  %x{i}: Tensor = aten::tanh(%{f'y{i - 1}' if i else 'a'})" for i in range(60)]
    lines = [
        f"{line}\n  %m{i}: Tensor = aten::gt.Tensor(%x{i}, 0.5)\n"
        f"  %y{i}: Tensor = aten::index_put(%x{i}, [%m{i}], %v, False)"
        for i, line in enumerate(lines)
    ]
    text = "graph f(%x: Tensor, %at: Tensor, %v: Tensor) {\n" + planned + "\n".join(lines) + "\n  return %y59\n}"
    g, attempts = graph(text), []
    monkeypatch.setattr(cutting, "Planner", lambda row: attempts.append(row) or Planner(row))
    for _ in range(2):
        agree(g, tg.linspace(-1, 1, 5), tg.tensor([1, 3]), tg.tensor(0.75))
    assert len(g.executor.boxed) == 60 and sum(g.executor.found.values()) <= 10
    assert len(attempts) <= 60 + 2 * sum(g.executor.found.values())
