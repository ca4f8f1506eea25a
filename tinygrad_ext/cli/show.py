"""Printing tables and lists of facts, coloured on a terminal that has rich."""

import sys


def _console():
    """rich's console, or None for plain text."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console()


def table(titles, rows):
    """A table; piped, columns are separated by spaces."""
    console = _console()
    if console is not None:
        from rich.table import Table
        from rich.text import Text

        t = Table(*titles, box=None, header_style="bold")
        for row in rows:
            t.add_row(*map(Text, row))
        console.print(t)
        return
    widths = [max(len(row[k]) for row in [titles, *rows]) for k in range(len(titles))]
    for row in [titles, *rows]:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())


def facts(title, rows):
    """A heading, then one line a fact."""
    console = _console()
    width = max(len(name) for name, _ in rows)
    if console is None:
        print(title)
    else:
        console.print(title, style="bold", markup=False, highlight=False)
    for name, text in rows:
        line = f"  {name.ljust(width)}  {text}"
        print(line) if console is None else console.print(line, markup=False, highlight=False, soft_wrap=True)
