"""The picture of an Explanation: a small layered drawing, as SVG.

Layers follow the longest way from the output; in each, boxes are sorted by where their neighbours stand. An edge that
skips layers keeps a free column in each of them. Chains of unremarkable nodes are folded into one box.
"""

from dataclasses import dataclass, field
from html import escape
from textwrap import wrap

FOLD = 4  # a chain of more boxes than this is folded
LAYERS = 30  # of more layers the middle ones are left out
WIDTH, HEIGHT, GAP_X, GAP_Y = 214, 46, 30, 44

INK = "#111827"
COLORS = {  # fill, line
    "fine": ("#eef4fb", "#3b6ea5"),
    "vanished": ("#fdf3dc", "#b7791f"),
    "nan": ("#fde8e8", "#c53030"),
    "inf": ("#fde8e8", "#c53030"),
    "none": ("#f3f4f6", "#9ca3af"),
    "unknown": ("#ffffff", "#9ca3af"),
    "apart": ("#f8fafc", "#64748b"),
}


@dataclass(eq=False, repr=False)
class Box:
    """A step, or several in a row."""

    title: str
    subtitle: str
    state: str
    tip: str = ""
    edges: list = field(default_factory=list)  # (box, label, state)
    layer: int = 0
    x: float = 0.0
    is_real: bool = True  # else a bend of an edge


def draw(told):
    """SVG text of an Explanation."""
    boxes = _boxes(told)
    if not told.steps:
        boxes = [Box("output", told.output, "none")]
    loose = [] if told.connected else [Box("input, not reached", told.input, "nan")]
    layers = _layers(boxes)
    for box in loose:
        layers.append([box])
    _order(layers)
    width = max(max(b.x for b in layer) for layer in layers) + WIDTH / 2 + GAP_X
    width = max(width, 460.0)
    head, top = _head(told, int((width - 40) / 6))
    for i, layer in enumerate(layers):
        for box in layer:
            box.layer = i
    height = top + len(layers) * (HEIGHT + GAP_Y)
    parts = [_open(width, height), *head]
    parts += _edges([box for layer in layers for box in layer], top)
    parts += [_box(box, top) for layer in layers for box in layer if box.is_real]
    return "\n".join([*parts, "</svg>"])


# ---- what is drawn -------------------------------------------------------------------------------------------------


def _boxes(told):
    """Boxes of the steps, chains folded, newest first."""
    steps = told.steps
    feeders = [[] for _ in steps]
    for i, step in enumerate(steps):
        for _, to, _ in step.edges:
            feeders[to].append(i)
    groups, group_of = [], {}
    for i, step in enumerate(steps):
        above = feeders[i]
        if len(above) == 1 and above[0] and i != len(steps) - 1 and _is_dull(step) and _is_dull(steps[above[0]]):
            group_of[i] = group_of[above[0]]
            groups[group_of[i]].append(i)
        else:
            group_of[i] = len(groups)
            groups.append([i])
    return _folded(told, groups)


def _is_dull(step):
    """One of a chain, with nothing to tell."""
    return len(step.edges) == 1 and step.error is None and step.edges[0][2].state == step.arrived.state


def _folded(told, groups):
    rows = [[row] if len(row) > FOLD else [[i] for i in row] for row in groups]
    flat = sorted((part for parts in rows for part in parts), key=lambda part: part[0])
    place = {i: k for k, part in enumerate(flat) for i in part}
    boxes = [_box_of(told, part) for part in flat]
    for part, box in zip(flat, boxes):
        for name, to, flow in told.steps[part[-1]].edges:
            box.edges.append((boxes[place[to]], f"{name} {flow}" if told.connected else name, flow.state))
    return boxes


def _box_of(told, part):
    steps = [told.steps[i] for i in part]
    first, last = steps[0], steps[-1]
    state = "nan" if first.error else first.arrived.state if told.connected else "apart"
    if len(steps) > 1:
        tip = "\n".join(f"{s.name} {s.place}" for s in steps[:30])
        return Box(f"{len(steps)} nodes", f"{first.name} to {last.name}", state, tip)
    if first.name == "AccumulateGrad":
        return Box(_leaf(told, first), told.input if told.connected else "another leaf", state, "AccumulateGrad")
    where = first.place.rsplit("/", 1)[-1]
    title = ("output: " if part[0] == 0 else "") + first.name.removesuffix("Backward0")
    return Box(
        title + (f"   |g| {first.arrived}" if told.connected else ""),
        where,
        state,
        first.error or f"{first.name} at {first.place}",
    )


def _leaf(told, step):
    return f"input   |g| {step.arrived}" if told.connected else "AccumulateGrad"


# ---- where it stands -----------------------------------------------------------------------------------------------


def _layers(boxes):
    """Boxes by their longest way from the first; edges that skip layers get bends."""
    for box in boxes:  # newest first, so a box comes after everything that feeds it
        for to, _, _ in box.edges:
            to.layer = max(to.layer, box.layer + 1)
    layers = [[] for _ in range(max(b.layer for b in boxes) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    layers = _shortened(layers)
    for box in [b for layer in layers for b in layer]:
        box.edges = [_bent(box, *edge, layers) for edge in box.edges]
    return layers


def _shortened(layers):
    """The middle of a long drawing becomes one box."""
    if len(layers) <= LAYERS:
        return layers
    half = LAYERS // 2
    hidden = {id(b) for layer in layers[half:-half] for b in layer}
    middle = Box(f"{len(hidden)} more nodes", "left out here; str() and .steps have them", "unknown", layer=half)
    for box in [b for layer in layers[:half] for b in layer]:
        box.edges = _unique([(middle if id(to) in hidden else to, label, state) for to, label, state in box.edges])
    last = {id(b): b for layer in layers[-half:] for b in layer}
    inner = [b for layer in layers[half:-half] for b in layer]
    middle.edges = _unique([e for b in inner for e in b.edges if id(e[0]) in last])
    kept = [*layers[:half], [middle], *layers[-half:]]
    for i, layer in enumerate(kept):
        for box in layer:
            box.layer = i
    return kept


def _unique(edges):
    return list({id(e[0]): e for e in edges}.values())


def _bent(box, to, label, state, layers):
    """The first piece of an edge; the others go from bend to bend."""
    first = None
    previous = box
    for layer in range(box.layer + 1, to.layer):
        bend = Box("", "", state, layer=layer, is_real=False)
        layers[layer].append(bend)
        if previous is box:
            first = bend
        else:
            previous.edges.append((bend, "", state))
        previous = bend
    if previous is box:
        return to, label, state
    previous.edges.append((to, "", state))
    return first, label, state


def _order(layers):
    """Sort each layer by the places of its neighbours, down and up a few times, and set x."""
    for layer in layers:
        _spread(layer, [float(i) * (WIDTH + GAP_X) for i in range(len(layer))])
    above = {}
    for layer in layers:
        for box in layer:
            for to, _, _ in box.edges:
                above.setdefault(id(to), []).append(box)
    for sweep in range(6):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            near = [above.get(id(b), []) if sweep % 2 == 0 else [to for to, _, _ in b.edges] for b in layer]
            wanted = [sum(n.x for n in ns) / len(ns) if ns else b.x for b, ns in zip(layer, near)]
            ranked = sorted(range(len(layer)), key=lambda i: wanted[i])
            layer[:] = [layer[i] for i in ranked]
            _spread(layer, [wanted[i] for i in ranked])
    left = min(b.x for layer in layers for b in layer)
    for layer in layers:
        for box in layer:
            box.x += WIDTH / 2 + GAP_X - left


def _spread(layer, wanted):
    """As near to the wanted places as the widths allow."""
    room = [WIDTH + GAP_X if b.is_real else 60 for b in layer]
    x = []
    for i, w in enumerate(wanted):
        x.append(w if i == 0 else max(w, x[-1] + (room[i - 1] + room[i]) / 2))
    shift = sum(w - v for w, v in zip(wanted, x)) / len(x)
    for box, v in zip(layer, x):
        box.x = v + shift


# ---- SVG -----------------------------------------------------------------------------------------------------------


def _open(width, height):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif">\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>'
    )


def _head(told, room):
    """(lines of text above the drawing, where the drawing begins)"""
    rows = [(line, 13, INK) for line in (f"output: {told.output}", f"input: {told.input}")]
    for problem in told.problems[:4]:
        rows += [(line, 11, "#c53030") for line in wrap(problem, room)[:6]]
    text, y = [], 8
    for line, size, color in rows:
        y += size + 5
        text.append(_text(20, y, size, color, line))
    return text, y + 26


def _y(box, top):
    return top + box.layer * (HEIGHT + GAP_Y)


def _text(x, y, size, color, text, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}"{more}>{escape(text)}</text>'


def _box(box, top):
    fill, line = COLORS[box.state]
    x, y = box.x - WIDTH / 2, _y(box, top)
    dash = ' stroke-dasharray="4 3"' if box.state in ("none", "unknown") else ""
    middle = ' text-anchor="middle"'
    return (
        f"<g><title>{escape(box.tip or box.subtitle)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{WIDTH}" height="{HEIGHT}" rx="7" fill="{fill}" stroke="{line}"{dash}/>'
        + _text(box.x, y + 19, 13, INK, _cut(box.title, 30), middle)
        + _text(box.x, y + 35, 10, "#6b7280", _cut(box.subtitle, 40), middle)
        + "</g>"
    )


def _edges(boxes, top):
    """All edges, those of one box side by side."""
    arriving = {}
    for box in sorted(boxes, key=lambda b: b.x):
        for edge in box.edges:
            arriving.setdefault(id(edge[0]), []).append(edge)
    drawn = []
    for box in boxes:
        leaving = sorted(box.edges, key=lambda e: e[0].x)
        for k, edge in enumerate(leaving):
            into = arriving[id(edge[0])]
            number = next(i for i, e in enumerate(into) if e is edge)
            drawn.append(_edge(box, _port(box, k, len(leaving), 84), edge, _port(edge[0], number, len(into), 18), top))
    return drawn


def _port(box, k, count, step):
    """Where the k-th of several edges touches a box."""
    step = min(step, (WIDTH - 20) / max(count - 1, 1))
    return box.x + (k - (count - 1) / 2) * step if box.is_real else box.x


def _edge(a, x1, edge, x2, top):
    b, label, state = edge
    line = COLORS[state][1]
    y1, y2 = _y(a, top) + HEIGHT, _y(b, top)
    bend = (y2 - y1) * 0.6
    dash = ' stroke-dasharray="5 4"' if state == "none" else ""
    path = f"M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}"
    if b.is_real:
        path += f" M{x2 - 4:.1f},{y2 - 7:.1f} L{x2:.1f},{y2:.1f} L{x2 + 4:.1f},{y2 - 7:.1f}"
    else:  # straight through the layer where only the edge passes
        path += f" L{x2:.1f},{y2 + HEIGHT:.1f}"
    drawn = f'<path d="{path}" fill="none" stroke="{line}" stroke-width="1.4"{dash}/>'
    if label:
        halo = ' paint-order="stroke" stroke="#ffffff" stroke-width="3"'
        drawn += _text(x1 + 5, y1 + 12, 10, line, _cut(label, 16), halo)
    return drawn


def _cut(text, room):
    return text if len(text) <= room else text[: room - 1] + "…"
