"""Graphs of a few nodes, and the comparison of plan and interpreter."""

from tests.helpers.graphs import same_bits
from tinygrad_ext.graph import Graph, interpret


def graph(text):
    return Graph.parse(text).check()


def line(body, inputs="%x: Tensor", returned=None):
    """A graph of a few nodes, `%n = op(args)` each; returns the last value."""
    lines = [f"  %{i}: {part.partition(' = ')[0]} = {part.partition(' = ')[2]}" for i, part in enumerate(body)]
    text = "\n".join(lines)
    return graph(f"graph f({inputs}) {{\n{text}\n  return {returned or f'%{len(body) - 1}'}\n}}")


def agree(g, *inputs, state=()):
    expected = interpret.run(g, list(inputs), state)
    for _ in range(2):
        found = g.execute(inputs, state)
        assert same_bits(found[0], expected[0]) and same_bits(found[1], expected[1]), g.plan(
            *inputs, state=state
        ).table()
