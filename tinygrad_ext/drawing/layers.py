"""Where boxes stand: layers by the longest way, sorted by where their neighbours are.

Boxes come in an order in which each edge leads to a later one. Layers follow the longest way from the first; an edge
that skips layers keeps a free column in each of them. Of many layers the middle ones are left out.
"""

from collections import namedtuple
from dataclasses import dataclass, field

WIDTH, HEIGHT, GAP_X, GAP_Y = 214, 46, 30, 44
BEND = 60  # room that an edge has in a layer where it only passes
FOLD = 4  # a chain of more boxes than this is folded

Style = namedtuple("Style", "fill line is_dashed", defaults=(False,))


@dataclass(eq=False, repr=False)
class Box:
    """Something with a frame around it, of two lines of text or, as `parts`, of (title, Drawing) side by side."""

    title: str
    subtitle: str
    style: Style
    tip: str = ""
    edges: list = field(default_factory=list)  # (box, label, style)
    width: float = WIDTH
    height: float = HEIGHT
    parts: tuple = ()
    is_late: bool = False  # it stands just above what it leads to
    is_real: bool = True  # else a bend of an edge
    layer: int = 0
    x: float = 0.0  # of its middle
    y: float = 0.0  # of its upper side
    bottom: float = 0.0  # of its layer


@dataclass(eq=False, repr=False)
class Drawing:
    """Boxes that have their places, bends included, in a frame from (0, 0)."""

    boxes: list
    width: float
    height: float


def arrange(boxes, most=30, rest="left out here", apart=()):
    """Give boxes their places; returns a Drawing.

    Args:
        boxes: each after all that lead to it. most: layers that are shown. rest: second line of the box that stands for
            the others. apart: boxes without edges, below all others.
    """
    layers = _layers(boxes, most, rest)
    layers += [[box] for box in apart]
    _order(layers)
    y = 0.0
    for i, layer in enumerate(layers):
        bottom = y + max((box.height for box in layer if box.is_real), default=HEIGHT)
        for box in layer:
            box.layer, box.y, box.bottom = i, y, bottom
        y = bottom + GAP_Y
    width = max(max(b.x + (b.width / 2 if b.is_real else 0) for b in layer) for layer in layers) + GAP_X
    return Drawing([box for layer in layers for box in layer], width, y - GAP_Y + 20)


def chains(feeders, is_dull):
    """Groups of what is drawn, by number: each in one alone, but what is folded, which are more than FOLD in a chain.

    Args:
        feeders: of each the numbers of those that lead to it, all smaller. is_dull: whether one may be folded.
    """
    groups, group_of = [], {}
    for i, above in enumerate(feeders):
        if len(above) == 1 and is_dull(i) and is_dull(above[0]):
            group_of[i] = group_of[above[0]]
            groups[group_of[i]].append(i)
        else:
            group_of[i] = len(groups)
            groups.append([i])
    rows = [[row] if len(row) > FOLD else [[i] for i in row] for row in groups]
    return sorted((part for parts in rows for part in parts), key=lambda part: part[0])


# ---- layers --------------------------------------------------------------------------------------------------------


def _layers(boxes, most, rest):
    """Boxes by their longest way from the first; edges that skip layers get bends."""
    for box in boxes:
        for to, _, _ in box.edges:
            to.layer = max(to.layer, box.layer + 1)
    for box in boxes:
        if box.is_late and box.edges:
            box.layer = min(to.layer for to, _, _ in box.edges) - 1
    layers = [[] for _ in range(max(b.layer for b in boxes) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    layers = _shortened(layers, most, rest)
    for box in [b for layer in layers for b in layer]:
        box.edges = [_bent(box, *edge, layers) for edge in box.edges]
    return layers


def _shortened(layers, most, rest):
    """The middle of a long drawing becomes one box."""
    if len(layers) <= most:
        return layers
    half = most // 2
    hidden = {id(b) for layer in layers[half:-half] for b in layer}
    middle = Box(f"{len(hidden)} more nodes", rest, Style("#ffffff", "#9ca3af", True), layer=half)
    for box in [b for layer in layers[:half] for b in layer]:
        box.edges = _unique([(middle if id(to) in hidden else to, label, style) for to, label, style in box.edges])
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


def _bent(box, to, label, style, layers):
    """The first piece of an edge; the others go from bend to bend."""
    first = None
    previous = box
    for layer in range(box.layer + 1, to.layer):
        bend = Box("", "", style, layer=layer, is_real=False)
        layers[layer].append(bend)
        if previous is box:
            first = bend
        else:
            previous.edges.append((bend, "", style))
        previous = bend
    if previous is box:
        return to, label, style
    previous.edges.append((to, "", style))
    return first, label, style


# ---- columns -------------------------------------------------------------------------------------------------------


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
    left = min(b.x - b.width / 2 if b.is_real else b.x for layer in layers for b in layer)
    for layer in layers:
        for box in layer:
            box.x += GAP_X - left


def _spread(layer, wanted):
    """As near to the wanted places as the widths allow."""
    room = [b.width + GAP_X if b.is_real else BEND for b in layer]
    x = []
    for i, w in enumerate(wanted):
        x.append(w if i == 0 else max(w, x[-1] + (room[i - 1] + room[i]) / 2))
    shift = sum(w - v for w, v in zip(wanted, x)) / len(x)
    for box, v in zip(layer, x):
        box.x = v + shift
