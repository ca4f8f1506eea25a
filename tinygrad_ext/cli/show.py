"""Printing tables and facts: in the width of a terminal, by rich; plain whole lines when piped; or JSON."""

import json
import sys

import click

GAP = "  "  # between columns
LAST = 20  # characters that the text at the end of a line should have
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
    """A table. Piped, columns are separated by spaces. Where a terminal is too narrow, a row is a block of lines."""
    rows = [titles, *rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(titles))]
    console = _console()
    if console is None:
        for row in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())
        return
    indent = sum(w + len(GAP) for w in widths[:-1])
    if indent + min(widths[-1], LAST) > console.width:
        for row in rows[1:]:
            facts(row[0], list(zip(titles[1:], row[1:])))
        return
    for number, row in enumerate(rows):
        start = "".join(cell.ljust(w) + GAP for cell, w in zip(row, widths[:-1]))
        _say(console, start, row[-1], indent, style=None if number else "bold")


def facts(title, rows):
    """A heading, then a line for each fact; facts without text are left out. A terminal gets whole words."""
    console = _console()
    rows = [(name, text) for name, text in rows if text]
    width = max((len(name) for name, _ in rows), default=0)
    if console is None:
        print(title)
        for name, text in rows:
            print(f"  {name.ljust(width)}  {text}")
        return
    _say(console, "", title, 2, style="bold")
    for name, text in rows:
        _say(console, f"  {name.ljust(width)}  ", text, width + 4)


def note(text):
    """A paragraph; whole words on a terminal."""
    console = _console()
    if console is None:
        print(text)
    else:
        _say(console, "", text, 2)


def _say(console, start, text, indent, style=None):
    """A text in lines of whole words, the further ones indented; what is longer than a line stays whole."""
    import textwrap

    if console.width - indent < LAST:
        indent = 4
    lines = textwrap.wrap(
        start.lstrip() + text,
        console.width,
        initial_indent=start[: len(start) - len(start.lstrip())],
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    for line in lines or [start.rstrip()]:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
