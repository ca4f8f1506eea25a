"""The picture of a graph: nodes as boxes from the inputs down, blocks of control flow in frames, long chains folded."""

from tinygrad_ext.drawing import svg
from tinygrad_ext.drawing.layers import Box, Style, arrange, chains

from .ir import Value, outer_values, used_values, values_in
from .primitives import CONTROL
from .text import node_line, write_arg
from .types import TENSOR

LAYERS = 60  # that are shown
DEEPEST, MOST_NODES = 3, 60  # frames in frames, nodes of a block that is drawn inside one
PILL = 26  # height of a box of one line

STYLES = {
    "op": Style("#eef4fb", "#3b6ea5"),
    "plugin": Style("#f5effc", "#7c4dbb"),
    "number": Style("#f8fafc", "#64748b"),
    "control": Style("#fdf8ec", "#b7791f"),
    "input": Style("#e9f7ef", "#2f855a"),
    "state": Style("#e6f6f7", "#1f7a85"),
    "end": Style("#f3f4f6", "#374151"),
    "outer": Style("#ffffff", "#9ca3af", True),
    "tensor edge": Style("", "#3b6ea5"),
    "number edge": Style("", "#94a3b8"),
}


def draw(graph):
    """SVG text of a Graph."""
    scene = _Scene(graph)
    drawing = scene.drawing(graph.block, 0)
    given = ", ".join(f"%{v.name}: {v.type}" for v in graph.inputs)
    count = sum(1 for _ in graph.walk())
    width = max(drawing.width, 360.0)
    head = [
        svg.text(20, 24, 13, svg.INK, svg.cut(f"{graph.name}({given})", int((width - 30) / 6.6))),
        svg.text(20, 42, 11, svg.GREY, f"{count} nodes, {len(graph.state)} of state"),
    ]
    return svg.picture(width, 58 + drawing.height, [*head, *svg.drawn(drawing, top=58)])


class _Scene:
    """Makes the boxes of one graph's blocks."""

    def __init__(self, graph):
        self.graph = graph

    def drawing(self, block, depth):
        """A block's boxes in their places; the graph's own block has state and writes besides."""
        state = self.graph.state if depth == 0 else []
        boxes = [_pill(f"%{v.name}: {v.type}", "input", _known(v)) for v in block.inputs]
        made = {id(v): box for v, box in zip(block.inputs, boxes)}
        for s in state:
            made[id(s.value)] = box = _pill(f"{s.kind} {s.name}", "state", f"%{s.value.name}: {s.value.type}, {s.kind}")
            box.is_late = True
            boxes.append(box)
        if depth:
            for value in outer_values(block):
                made[id(value)] = box = _pill(f"%{value.name}", "outer", f"%{value.name}: {value.type}, from outside")
                box.is_late = True
                boxes.append(box)
        boxes += self.nodes(block, made, depth)
        boxes += self.ends(block, state, made, depth)
        return arrange(boxes or [_pill("nothing", "end")], LAYERS, "left out here; str() and .nodes have them")

    def nodes(self, block, made, depth):
        """Boxes of the nodes, chains folded; `made` gets the box of each value."""
        nodes = block.nodes
        number = {id(v): i for i, node in enumerate(nodes) for v in node.outputs}
        feeders, uses = [], [0] * len(nodes)
        for node in nodes:
            above = [number[id(v)] for v in used_values(node) if id(v) in number]
            feeders.append(list(dict.fromkeys(above)))
            for i in feeders[-1]:
                uses[i] += 1
        for value in values_in(block.outputs):
            if id(value) in number:
                uses[number[id(value)]] += 1

        def is_dull(i):
            return uses[i] == 1 and len(used_values(nodes[i])) == 1 and nodes[i].op not in CONTROL

        boxes = []
        for part in chains(feeders, is_dull):
            run = [nodes[i] for i in part]
            box = self.box(run[0], depth) if len(run) == 1 else _folded(run)
            inside = {id(v) for node in run for v in node.outputs}
            for value in dict.fromkeys(v for node in run for v in used_values(node) if id(v) not in inside):
                _join(made[id(value)], box, value)
            made.update((id(v), box) for node in run for v in node.outputs)
            boxes.append(box)
        return boxes

    def box(self, node, depth):
        outputs = ", ".join(f"%{v.name}" for v in node.outputs)
        constants = ", ".join(write_arg(a) for a in node.args if not isinstance(a, Value) and a is not None)
        tip = _tip(node)
        if node.op in CONTROL:
            return self.frame(node, outputs, tip, depth)
        namespace, _, name = node.op.partition("::")
        style = "number" if namespace == "prim" else "op" if node.owner == "tinygrad_ext" else "plugin"
        title = name if namespace in ("aten", "prim") else node.op
        told = f"{outputs}   {constants}".strip() or " "
        return Box(title, told, STYLES[style], tip, width=svg.width_of(title, told))

    def frame(self, node, outputs, tip, depth):
        """Control flow: its blocks side by side in a frame, or folded where they are large or deep."""
        name = node.op.removeprefix("prim::")
        title = f"{name} {node.args[0]}" if name == "Function" else name
        title += f"   {outputs}" * bool(outputs)
        sizes = [sum(1 for _ in block.walk()) for block in node.blocks]
        if depth >= DEEPEST or max(sizes, default=0) > MOST_NODES:
            told = ", ".join(f"{word}: {n} nodes" for word, n in zip(_titles(node), sizes))
            return Box(title, told, STYLES["control"], tip, width=svg.width_of(title, told))
        parts = tuple((word, self.drawing(block, depth + 1)) for word, block in zip(_titles(node), node.blocks))
        width, height = svg.framed_size(parts)
        return Box(title, "", STYLES["control"], tip, width=width, height=height, parts=parts)

    def ends(self, block, state, made, depth):
        """What the block gives back, and what the graph writes."""
        told = "yield" if depth else "return"
        boxes = []
        if block.outputs or depth:
            boxes.append(_pill(f"{told} {', '.join(map(write_arg, block.outputs))}", "end"))
            for value in dict.fromkeys(values_in(block.outputs)):
                _join(made[id(value)], boxes[0], value)
        for s in state:
            if s.written:
                box = _pill(f"write {s.name}", "state", f"{s.kind} {s.name} = {write_arg(s.new)}")
                boxes.append(box)
                if isinstance(s.new, Value):
                    _join(made[id(s.new)], box, s.new)
        return boxes


def _pill(title, style, tip=""):
    return Box(title, "", STYLES[style], tip or title, width=svg.width_of(title, most=420.0), height=PILL)


def _join(box, to, value):
    """An edge, once; a label where one cannot know which of several values it is."""
    if all(other is not to for other, _, _ in box.edges):
        several = value.node is not None and len(value.node.outputs) > 1
        edge = STYLES["tensor edge" if value.type is TENSOR else "number edge"]
        box.edges.append((to, f"%{value.name}" if several else "", edge))


def _folded(run):
    first, last = run[0], run[-1]
    title = f"{first.op.partition('::')[2]} to {last.op.partition('::')[2]}"
    tip = "\n".join(map(_tip, run[:30]))
    return Box(f"{len(run)} nodes", title, STYLES["op"], tip, width=svg.width_of("", title))


def _tip(node):
    return node_line(node) + f"\nof {node.owner}" + f"\nat {node.line}" * bool(node.line)


def _known(value):
    """A value as a tip: its type and what is known of it."""
    hint = value.hint
    shape = getattr(hint, "shape", None)
    more = "" if hint is None else f" {list(shape)} {hint.dtype}" if shape is not None else f" {hint!r}"
    return f"%{value.name}: {value.type}{more}"


def _titles(node):
    """Words for the blocks of a node of control flow."""
    if node.op == "prim::If":
        return f"if {write_arg(node.args[0])}", "else"
    if node.op == "prim::Loop":
        count, condition = map(write_arg, node.args[:2])
        return (f"at most {count} times" if count != "None" else f"while {condition}",)
    return "forward", "backward"
