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


def indented(text):
    """The text of a graph, its blocks indented."""
    depth, lines = 0, []
    for text_line in map(str.strip, text.splitlines()):
        depth -= text_line.startswith("}")
        lines.append("  " * depth + text_line)
        depth += text_line.endswith("{")
    return "\n".join(lines)


def outcome(run):
    """Results, or the kind of error and the first line of what it says."""
    try:
        return run()
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


def same(g, *inputs):
    expected = outcome(lambda: interpret.run(g, list(inputs))[0])
    for _ in range(2):
        found = outcome(lambda: g.execute(list(inputs))[0])
        if type(expected) is list:
            assert same_bits(found, expected), f"{g}\n{inputs}: {found}, expected {expected}"
            assert [type(a) for a in found] == [type(a) for a in expected]
        else:
            assert found == expected, f"{g}\n{inputs}"
    return g
