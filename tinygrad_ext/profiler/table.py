"""Events as a table of text."""

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def text(rows, whole, widths, header, unit):
    """Rows of events or averages; whole: what the shares are of, widths: of names, shapes and lines."""
    total = whole.self_cpu_time_total or 1
    memory = any(e.cpu_memory_usage or e.self_cpu_memory_usage for e in whole)
    shapes, lines = any(e.input_shapes for e in whole), any(e.stack for e in whole)
    overloads, flops = any(e.overload_name for e in rows), any(e.flops for e in whole)
    heads = [
        "Name",
        *["Overload Name"] * overloads,
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
    ]
    heads += ["CPU Mem", "Self CPU Mem"] * memory + ["# of Calls"] + ["Input Shapes"] * shapes
    heads += ["Source Location"] * lines + ["Total MFLOPs"] * flops
    cells = [heads]
    for e in rows:
        row = [cut(e.key, widths[0]), *[e.overload_name] * overloads]
        row += [f"{e.self_cpu_time_total / total:.2%}", duration(e.self_cpu_time_total, unit)]
        row += [f"{e.cpu_time_total / total:.2%}", duration(e.cpu_time_total, unit), duration(e.cpu_time, unit)]
        row += [size(e.cpu_memory_usage), size(e.self_cpu_memory_usage)] * memory + [str(e.count)]
        row += [cut(str(e.input_shapes), widths[1])] * shapes
        row += [cut_left(e.stack[0] if e.stack else "", widths[2])] * lines
        row += [f"{e.flops / 1e6:.3f}" if e.flops else "--"] * flops
        cells.append(row)
        for line in e.stack[1:] if hasattr(e, "add") else ():  # an average says as many as it was grouped by
            cells.append([*[""] * (len(heads) - 1 - flops), cut_left(line, widths[2]), *[""] * flops])
    columns = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    rule = "  ".join("-" * w for w in columns)
    out = ["  ".join(cell.rjust(w) for cell, w in zip(row, columns, strict=True)) for row in cells]
    out = [*([header] if header else []), rule, out[0], rule, *out[1:], rule]
    out.append(f"Self CPU time total: {duration(whole.self_cpu_time_total, unit)}")
    if whole.dropped:
        out.append(
            f"{whole.dropped} older slices are missing: profile(capacity=...) keeps more, a schedule records less"
        )
    return "\n".join(out) + "\n"


def cut(words, width):
    return words if not width or len(words) <= width else words[: max(width - 3, 0)] + "..."


def cut_left(words, width):
    return words if not width or len(words) <= width else "..." + words[len(words) - max(width - 3, 0) :]


def duration(us, unit=None):
    """Microseconds as text, in a unit or in the one that fits."""
    if unit is None:
        unit = next((name for name, scale in _UNITS.items() if us >= scale), "us")
    elif unit not in _UNITS:
        raise ValueError(f"time_unit is {unit!r}; expected one of {', '.join(map(repr, _UNITS))}")
    return f"{us / _UNITS[unit]:.3f}{unit}"


def size(count):
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(count) >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{count} B"
