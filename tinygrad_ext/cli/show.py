"""Printing tables and lists of facts: for people by rich on a terminal, plain text when piped; or JSON for programs."""

import json
import sys

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def dump(value):
    """Print a value as JSON."""
    print(json.dumps(value, indent=1))


def _console():
    """rich's console, or None for plain text: pipes and files get whole lines, whatever the width of a terminal."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

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
    """A heading, then one line a fact; facts without text are left out."""
    console = _console()
    rows = [(name, text) for name, text in rows if text]
    width = max((len(name) for name, _ in rows), default=0)
    if console is None:
        print(title)
    else:
        console.print(title, style="bold", markup=False, highlight=False)
    for name, text in rows:
        line = f"  {name.ljust(width)}  {text}"
        print(line) if console is None else console.print(line, markup=False, highlight=False, soft_wrap=True)
