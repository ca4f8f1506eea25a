"""Boxes that have their places as SVG, one element a line."""

from html import escape

from .layers import WIDTH, Drawing

INK, GREY = "#111827", "#6b7280"
TITLE = 24  # height of the line above what is framed
_MIDDLE = ' text-anchor="middle"'


def picture(width, height, parts):
    """A whole SVG text of these parts on white."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif">\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>'
    )
    return "\n".join([head, *parts, "</svg>"])


def drawn(drawing: Drawing, left=0.0, top=0.0):
    """The parts of a drawing at a place: edges first, boxes over them."""
    return [*_edges(drawing.boxes, left, top), *(_box(b, left, top) for b in drawing.boxes if b.is_real)]


def text(x, y, size, color, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}"{more}>{escape(words)}</text>'


def cut(words, room):
    return words if len(words) <= room else words[: room - 1] + "…"


def width_of(title, subtitle="", most=WIDTH):
    """Width of a box that these two lines fit in."""
    return min(max(len(title) * 7.1 + 18, len(subtitle) * 5.6 + 18, 84.0), most)


def framed_size(parts):
    """(width, height) of a box with (title, Drawing) side by side."""
    return sum(d.width for _, d in parts) + 12 * (len(parts) + 1), max(d.height for _, d in parts) + 2 * TITLE + 4


# ---- boxes ---------------------------------------------------------------------------------------------------------


def _rect(x, y, width, height, style, more=""):
    dash = ' stroke-dasharray="4 3"' if style.is_dashed else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:g}" height="{height:g}" rx="7" fill="{style.fill}" '
        f'stroke="{style.line}"{dash}{more}/>'
    )


def _box(box, left, top):
    fits = box.width / 7.1  # letters of the first line
    x, y = left + box.x - box.width / 2, top + box.y
    head = f"<g><title>{escape(box.tip or box.subtitle)}</title>{_rect(x, y, box.width, box.height, box.style)}"
    if box.parts:
        return "\n".join([head + _framed(box, x, y), "</g>"])
    middle = x + box.width / 2
    if not box.subtitle:
        return head + text(middle, y + box.height / 2 + 4, 11, INK, cut(box.title, int(fits * 1.05)), _MIDDLE) + "</g>"
    first = text(middle, y + 19, 13, INK, cut(box.title, int(fits)), _MIDDLE)
    return head + first + text(middle, y + 35, 10, GREY, cut(box.subtitle, int(fits * 4 / 3)), _MIDDLE) + "</g>"


def _framed(box, x, y):
    """What stands in a box that frames drawings."""
    out = [text(x + 14, y + 17, 12, INK, cut(box.title, int(box.width / 6.5)))]
    x += 12
    for title, inner in box.parts:
        out.append(_rect(x, y + TITLE, inner.width, box.height - TITLE - 12, type(box.style)("#ffffff", "#d1d5db")))
        out.append(text(x + 10, y + TITLE + 15, 10, GREY, cut(title, int(inner.width / 5.5))))
        out += drawn(inner, x, y + 2 * TITLE)
        x += inner.width + 12
    return "\n".join(out)


# ---- edges ---------------------------------------------------------------------------------------------------------


def _edges(boxes, left, top):
    """All edges, those of one box side by side."""
    arriving = {}
    for box in sorted(boxes, key=lambda b: b.x):
        for edge in box.edges:
            arriving.setdefault(id(edge[0]), []).append(edge)
    number = {id(edge): i for edges in arriving.values() for i, edge in enumerate(edges)}
    out = []
    for box in boxes:
        leaving = sorted(box.edges, key=lambda e: e[0].x)
        for k, edge in enumerate(leaving):
            end = _port(edge[0], number[id(edge)], len(arriving[id(edge[0])]), 18)
            out.append(_edge(box, left + _port(box, k, len(leaving), 84), edge, left + end, top))
    return out


def _port(box, k, count, step):
    """Where the k-th of several edges touches a box."""
    step = min(step, (box.width - 20) / max(count - 1, 1))
    return box.x + (k - (count - 1) / 2) * step if box.is_real else box.x


def _edge(a, x1, edge, x2, top):
    b, label, style = edge
    y0, y1, y2 = top + a.y + a.height * a.is_real, top + a.bottom, top + b.y
    bend = (y2 - y1) * 0.6
    dash = ' stroke-dasharray="5 4"' if style.is_dashed else ""
    # straight through the layer, beside boxes that are higher, where a bend stands for no box at all
    path = f"M{x1:.1f},{y0:.1f}" + (f" L{x1:.1f},{y1:.1f}" if y0 < y1 else "")
    path += f" C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}"
    if b.is_real:
        path += f" M{x2 - 4:.1f},{y2 - 7:.1f} L{x2:.1f},{y2:.1f} L{x2 + 4:.1f},{y2 - 7:.1f}"
    out = f'<path d="{path}" fill="none" stroke="{style.line}" stroke-width="1.4"{dash}/>'
    if label:
        halo = ' paint-order="stroke" stroke="#ffffff" stroke-width="3"'
        out += text(x1 + 5, y0 + 12, 10, style.line, cut(label, 16), halo)
    return out
