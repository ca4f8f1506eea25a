"""`Graph.draw()` shows every node, or says how many it folds, and frames what control flow runs."""

import re
from xml.etree import ElementTree

import pytest

import tinygrad_ext as tg
from tests.helpers import graphs
from tinygrad_ext.graph import Block, Graph
from tinygrad_ext.graph.types import INT

SVG = "{http://www.w3.org/2000/svg}"


def drawn(graph):
    """(root, words of the picture, tooltips)."""
    root = ElementTree.fromstring(graph.draw())
    return root, [t.text for t in root.iter(f"{SVG}text")], [t.text for t in root.iter(f"{SVG}title")]


def chain(count, op="aten::exp"):
    graph = Graph("chain")
    value = graph.input("x")
    for _ in range(count):
        value = graph.make(graph.block, op, (value,), line="a.py:1 in f").output
    graph.block.outputs = [value]
    return graph


def rects(root):
    """(x, y, width, height) of the boxes, the ground excepted."""
    found = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in root.iter(f"{SVG}rect") if r.get("x")]
    assert found
    return found


def test_every_node_stands_in_the_picture():
    graph = graphs.everything()[0]
    root, words, tips = drawn(graph)
    for node in graph.walk():
        told = node.op.partition("::")[2].partition(".")[0]
        assert any(word.startswith(told) for word in words), node
    assert {"forward", "backward", "if %c", "else", "at most %n times", "while %c"} <= set(words)
    assert any("%1: Tensor = aten::mul.Tensor(%x, %w)" in t and "\nof tinygrad_ext\nat net.py:3" in t for t in tips)
    assert {"parameter fc.weight", "write fc.weight", "%x: Tensor"} <= set(words)


def test_boxes_lie_in_the_picture_and_apart_or_in_each_other():
    root, _, _ = drawn(graphs.everything()[0])
    wide, high = float(root.get("width")), float(root.get("height"))
    boxes = rects(root)
    for i, (x, y, w, h) in enumerate(boxes):
        assert x >= 0 and y >= 0 and x + w <= wide + 1 and y + h <= high + 1
        for u, v, r, s in boxes[i + 1 :]:
            apart = x + w <= u or u + r <= x or y + h <= v or v + s <= y
            inside = (x <= u and y <= v and u + r <= x + w and v + s <= y + h) or (
                u <= x and v <= y and x + w <= u + r and y + h <= v + s
            )
            assert apart or inside


def test_a_long_chain_is_folded_and_a_short_one_is_not():
    _, words, tips = drawn(chain(40))
    assert "40 nodes" in words and "exp to exp" in words and "exp" not in words
    assert any(t.count("aten::exp(") == 30 for t in tips)
    assert drawn(chain(4))[1].count("exp") == 4


def test_a_long_graph_leaves_out_its_middle():
    graph = Graph("long")
    value = graph.input("x")
    for _ in range(300):
        value = graph.make(graph.block, "aten::mul.Tensor", (value, graph.inputs[0])).output
    graph.block.outputs = [value]
    _, words, _ = drawn(graph)
    assert any(re.fullmatch(r"2\d\d more nodes", word) for word in words) and len(words) < 150


def nested(depth, name):
    """An exp within six Ifs."""
    pad = "  " * (2 * depth + 1)
    if depth == 6:
        return f"{pad}%{name}: Tensor = aten::exp(%x)"
    inner = nested(depth + 1, f"{name}a")
    return "\n".join(
        [
            f"{pad}%{name}: Tensor = prim::If(True) {{",
            f"{pad}  block() {{\n{inner}\n{pad}    yield %{name}a\n{pad}  }}",
            f"{pad}  block() {{\n{pad}    yield %x\n{pad}  }}",
            f"{pad}}}",
        ]
    )


def test_deep_blocks_are_folded():
    graph = Graph.parse("graph f(%x: Tensor) {\n" + nested(0, "z") + "\n  return %z\n}").check()
    words = drawn(graph)[1]
    assert words.count("else") == 3 and "if True: 3 nodes, else: 0 nodes" in words


def test_large_blocks_are_folded():
    graph = Graph("large")
    block = Block([graph.value(INT), graph.value()])
    value = block.inputs[1]
    for _ in range(100):
        value = graph.make(block, "aten::exp", (value,)).output
    block.outputs = [True, value]
    node = graph.make(graph.block, "prim::Loop", (2, True, graph.input("x")), blocks=(block,))
    graph.block.outputs = [node.output]
    assert "at most 2 times: 100 nodes" in drawn(graph.check())[1]


def test_an_op_of_a_plugin_looks_different_and_says_whose_it_is():
    graph = Graph.parse("graph f(%x: Tensor) {\n  %1: Tensor = demo::roll(%x)  ! demo 1.0  # a.py:1\n  return %1\n}")
    root, words, tips = drawn(graph)
    assert "demo::roll" in words and any("of demo 1.0" in t for t in tips)
    assert any(r.get("stroke") == "#7c4dbb" for r in root.iter(f"{SVG}rect"))


def test_names_cannot_become_markup():
    graph = Graph.parse('graph f(%x: Tensor) {\n  %1: str = prim::str("</text><script>")  # <b>\n  return %1\n}')
    graph.name = "<i>&"
    root, words, _ = drawn(graph)
    assert words[0].startswith("<i>&(") and not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize("text", ["graph f() {\n  return\n}", "graph f(%x: Tensor) {\n  return %x, 3\n}"])
def test_graphs_without_nodes_have_pictures(text):
    graph = Graph.parse(text)
    assert drawn(graph)[0].tag == f"{SVG}svg" and "<svg" in graph._repr_html_()


def test_what_is_known_of_an_input_is_told():
    graph = chain(1)
    graph.inputs[0].hint = tg.empty(2, 3, device="meta")
    assert "%x: Tensor [2, 3] torch.float32" in drawn(graph)[2]
