"""Printing and writing the rows."""

import json

UNITS = {
    "s": (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)),
}
COLUMNS = ("case", "ours", "PyTorch", "NumPy", "ratio", "budget", "")
LIBRARIES = ("tinygrad_ext", "torch", "numpy")


def quantity(value, unit="s"):
    """1.23e-6 -> '1.23 µs'."""
    if value is None:
        return ""
    name, scale = next(((n, s) for n, s in UNITS[unit] if abs(value) >= s), UNITS[unit][-1])
    return f"{value / scale:.3g} {name}"


def cells(row):
    """The strings of one line of the table."""
    share = f" (others: {row.foreign:.0%} of a core)" if row.foreign > 0.1 else ""
    note = f"missing: {row.missing}" if row.missing else row.mark
    others = [f"{name} {quantity(v, row.unit)}" for name, v in row.values.items() if name not in LIBRARIES]
    others += [f"no {name}" for name in row.skipped if name not in LIBRARIES]
    note = " ".join([note, *([f"to {row.beside};"] if row.beside != "torch" else []), ", ".join(others)]).strip()
    return (
        row.name,
        *(quantity(row.values.get(name), row.unit) for name in LIBRARIES),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.budget is None else f"{row.budget:.2f}",
        (note if len(note) < 100 else note[:97] + "...") + share,
    )


def head(info):
    """Lines above the table."""
    blas = info["blas"] or {}
    versions = ", ".join(f"{name} {version}" for name, version in info["versions"].items())
    return [
        f"CPU      {info['cpu']}; loops {info['loops']}; threads {info['threads']}; load {info['load']}",
        f"BLAS     {blas.get('config') or 'none found'}, kernels {blas.get('core')}",
        f"versions {versions}, Python {info['python']}",
    ]


def verdict(rows, info, too_much):
    """Lines below the table."""
    compared = [r for r in rows if r.mark in ("ok", "over")]
    over = [r.name for r in compared if r.mark == "over"]
    lines = [
        f"{len(compared) - len(over)} of {len(compared)} rows within budget"
        + (f"; over: {', '.join(over)}" if over else "")
    ]
    missing = sum(bool(r.missing) for r in rows)
    if missing:
        lines.append(f"{missing} rows did not run, because a part is missing")
    disturbed = sum(r.foreign > too_much for r in rows)
    if disturbed or (info["load"] or 0) > info["threads"] + 0.5:
        lines.append(
            f"DOUBTFUL: other processes used the machine during {disturbed} of {len(rows)} rows "
            f"(load {info['load']} at the start). Repeat on an idle machine."
        )
    return lines


def show(rows, info, too_much):
    """Print everything, with rich where it is installed."""
    try:
        from rich.console import Console
    except ImportError:
        _show_plain(rows, info, too_much)
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    _show_rich(console, rows, info, too_much)


def _show_plain(rows, info, too_much):
    table = [COLUMNS, *map(cells, rows)]
    widths = [max(len(line[k]) for line in table) for k in range(len(COLUMNS) - 1)]
    print("\n".join(head(info)), end="\n\n")
    for line in table:
        name, *numbers, mark = line
        print(name.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True)), mark, sep="  ")
    print("", *verdict(rows, info, too_much), sep="\n")


def _show_rich(console, rows, info, too_much):
    from rich.table import Table
    from rich.text import Text

    for line in head(info):
        console.print(Text(line))
    table = Table(box=None, header_style="bold")
    for k, title in enumerate(COLUMNS):
        last = k == len(COLUMNS) - 1
        table.add_column(
            title,
            justify="left" if k == 0 or last else "right",
            no_wrap=True,
            min_width=None if last else max(len(cells(r)[k]) for r in rows),
        )
    group = None
    for row in rows:
        if row.group != group:
            table.add_row(Text(row.group, style="bold dim"))
            group = row.group
        style = {"ok": "green", "over": "red", "missing": "yellow"}.get(row.mark, "")
        *plain, mark = cells(row)
        table.add_row(*map(Text, plain), Text(mark, style=style))
    console.print(table)
    for line in verdict(rows, info, too_much):
        console.print(Text(line, style="bold"))


def write_json(path, rows, info):
    """Everything that was measured, for comparing runs."""
    data = {
        "info": info,
        "rows": [
            {
                "name": r.name,
                "group": r.group,
                "unit": r.unit,
                "values": r.values,
                "ratio": r.ratio,
                "budget": r.budget,
                "mark": r.mark,
                "missing": r.missing,
                "beside": r.beside,
                "skipped": r.skipped,
                "foreign": round(r.foreign, 3),
                "variants": [
                    {"dtype": v.dtype, "strided": v.strided, "values": values, "ratio": ratio}
                    for v, values, ratio in r.variants
                ],
            }
            for r in rows
        ],
    }
    with open(path, "w") as f:
        json.dump(data, f, indent=1)
