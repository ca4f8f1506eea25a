"""The picture of an Explanation: its steps as boxes, newest first, chains of unremarkable ones folded."""

from textwrap import wrap

from tinygrad_ext.drawing import svg
from tinygrad_ext.drawing.layers import Box, Style, arrange, chains

STYLES = {
    "fine": Style("#eef4fb", "#3b6ea5"),
    "vanished": Style("#fdf3dc", "#b7791f"),
    "nan": Style("#fde8e8", "#c53030"),
    "inf": Style("#fde8e8", "#c53030"),
    "none": Style("#f3f4f6", "#9ca3af", True),
    "unknown": Style("#ffffff", "#9ca3af"),
    "apart": Style("#f8fafc", "#64748b"),
}


def draw(told):
    """SVG text of an Explanation."""
    boxes = _boxes(told) if told.steps else [Box("output", told.output, STYLES["none"])]
    loose = [] if told.connected else [Box("input, not reached", told.input, STYLES["nan"])]
    drawing = arrange(boxes, rest="left out here; str() and .steps have them", apart=loose)
    width = max(drawing.width, 460.0)
    head, top = _head(told, int((width - 40) / 6))
    return svg.picture(width, top + drawing.height, [*head, *svg.drawn(drawing, top=top)])


def _boxes(told):
    """Boxes of the steps, chains folded, newest first."""
    steps = told.steps
    feeders = [[] for _ in steps]
    for i, step in enumerate(steps):
        for _, to, _ in step.edges:
            feeders[to].append(i)
    parts = chains(feeders, lambda i: 0 < i < len(steps) - 1 and _is_dull(steps[i]))
    place = {i: k for k, part in enumerate(parts) for i in part}
    boxes = [_box_of(told, part) for part in parts]
    for part, box in zip(parts, boxes):
        for name, to, flow in steps[part[-1]].edges:
            label = f"{name} {flow}" if told.connected else name
            box.edges.append((boxes[place[to]], label, STYLES[flow.state]))
    return boxes


def _is_dull(step):
    """One of a chain, with nothing to tell."""
    return len(step.edges) == 1 and step.error is None and step.edges[0][2].state == step.arrived.state


def _box_of(told, part):
    steps = [told.steps[i] for i in part]
    first, last = steps[0], steps[-1]
    style = STYLES["nan" if first.error else first.arrived.state if told.connected else "apart"]
    if len(steps) > 1:
        tip = "\n".join(f"{s.name} {s.place}" for s in steps[:30])
        return Box(f"{len(steps)} nodes", f"{first.name} to {last.name}", style, tip)
    if first.name == "AccumulateGrad":
        return Box(_leaf(told, first), told.input if told.connected else "another leaf", style, "AccumulateGrad")
    where = first.place.rsplit("/", 1)[-1]
    title = ("output: " if part[0] == 0 else "") + first.name.removesuffix("Backward0")
    return Box(
        title + (f"   |g| {first.arrived}" if told.connected else ""),
        where,
        style,
        first.error or f"{first.name} at {first.place}",
    )


def _leaf(told, step):
    return f"input   |g| {step.arrived}" if told.connected else "AccumulateGrad"


def _head(told, room):
    """(lines of text above the drawing, where the drawing begins)"""
    rows = [(line, 13, svg.INK) for line in (f"output: {told.output}", f"input: {told.input}")]
    for problem in told.problems[:4]:
        rows += [(line, 11, "#c53030") for line in wrap(problem, room)[:6]]
    text, y = [], 8
    for line, size, color in rows:
        y += size + 5
        text.append(svg.text(20, y, size, color, line))
    return text, y + 26
