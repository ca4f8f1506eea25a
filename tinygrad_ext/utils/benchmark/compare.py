"""Measurements side by side: one table for each label, a row for each sub-label, a column for each description."""

import enum
import itertools

from tinygrad_ext.core.call.boundary import boundary

from .measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_BEST, _GOOD, _BAD, _WORST = "\033[92m\033[1m", "\033[34m", "\033[2m\033[91m", "\033[31m\033[1m"
_END = "\033[0m"
_COLOURS = ((1.05, _BEST), (1.25, _GOOD), (2, ""), (5, _BAD))  # of times up to this many times the best


class Colorize(enum.Enum):
    """What colours compare."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


@boundary
class Compare:
    """Tables of Measurements, printed by `print()`; those of the same task are merged."""

    def __init__(self, results):
        self._results = []
        self.extend_results(results)
        self._trims, self._colours, self._warns = False, Colorize.NONE, False

    def extend_results(self, results):
        """Add Measurements. Raises ValueError for others."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Compare: expected Measurements, got {type(result).__name__}")
            self._results.append(result)

    def trim_significant_figures(self):
        """Show no more figures than are known."""
        self._trims = True

    def colorize(self, rowwise=False):
        """Colour what is much quicker or slower than the best of its column, or of its row."""
        self._colours = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Mark times whose quartiles lie far apart."""
        self._warns = True

    def print(self):
        print(str(self))

    def __str__(self):
        results = Measurement.merge(self._results)
        groups = [(label, list(found)) for label, found in itertools.groupby(sorted(results, key=_label), key=_label)]
        order = ordered_unique(map(_label, results))
        tables = [self._table(label, found) for label, found in sorted(groups, key=lambda g: order.index(g[0]))]
        return "\n\n".join(tables)

    def _table(self, label, results):
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.task_spec.description for m in results)
        rows = ordered_unique((m.task_spec.num_threads, m.env, m.as_row_name) for m in results)
        rows.sort(key=lambda row: row[0])
        cells = {((m.task_spec.num_threads, m.env, m.as_row_name), m.task_spec.description): m for m in results}
        heads = ["", *(c or "" for c in columns)]
        lines = [heads]
        for threads, same in itertools.groupby(rows, key=lambda row: row[0]):
            lines.append([f"{threads} thread{'s' * (threads != 1)}:"])
            for row in same:
                name = f"{'(' + row[1] + ') ' if row[1] else ''}{row[2]}"
                lines.append(["      " + name, *(self._cell(cells, row, c, scale) for c in columns)])
        widths = [max(len(_text(line[i])) for line in lines if i < len(line)) for i in range(len(heads))]
        shown = ["  |  ".join(_shown(c, w, not i) for i, (c, w) in enumerate(zip(line, widths))) for line in lines]
        wide = max(len(shown[0]), len(label) + 10)
        shown = [s if len(line) > 1 else s.rstrip().ljust(wide, "-") for s, line in zip(shown, lines)]
        marks = "\n(! the quartiles lie far apart)" * (self._warns and any(m.has_warnings for m in results))
        note = f"Times are in {unit_to_english(unit)}s ({unit}).{marks}"
        return "\n".join([f"[{f' {label} '.center(wide - 2, '-')}]", *shown, "", note, ""])

    def _cell(self, cells, row, column, scale):
        """Text of a time, and the colour it is shown in."""
        m = cells.get((row, column))
        if m is None:
            return ("", "")
        figures = m.significant_figures if self._trims else 4
        value = trim_sigfig(m.median, figures) / scale if self._trims else m.median / scale
        text = f"{value:.{1 if not self._trims else max(0, min(figures - len(str(int(value))), 3))}f}"
        text += " (!)" * (self._warns and m.has_warnings)
        if self._colours is Colorize.NONE:
            return (text, "")
        by_row = self._colours is Colorize.ROWWISE
        others = [o.median for (r, c), o in cells.items() if (r == row if by_row else c == column)]
        ratio, most = m.median / min(others), len(others) > 1
        found = next((colour for bound, colour in _COLOURS if ratio <= bound), _WORST)
        return (text, found if most else "")


def _text(cell):
    return cell[0] if type(cell) is tuple else cell


def _shown(cell, width, left):
    text, colour = cell if type(cell) is tuple else (cell, "")
    padded = text.ljust(width) if left else text.rjust(width)
    return f"{colour}{padded}{_END}" if colour else padded


def _label(m):
    return m.task_spec.label or m.task_spec.stmt
