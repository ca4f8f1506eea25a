"""What was measured: a task, its times, and how far they agree."""

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from tinygrad_ext.core.call.boundary import boundary

_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1.0, "second")}
_FINEST = 25e-9 / 1000  # seconds a run that are believed, at best
_MOST_FIGURES = 4
_SHAKY, _BAD = 0.1, 0.25  # distance between the quartiles, as a part of the median


def select_unit(t):
    """(unit, seconds in it) in which a time of t seconds reads best.

    >>> select_unit(3e-7)
    ('ns', 1e-09)
    """
    scale = math.floor(math.log10(t)) // 3 if t > 0 else 0
    unit = {-1: "ms", -2: "us"}.get(scale, "s" if scale >= 0 else "ns")
    return unit, _UNITS[unit][0]


def unit_to_english(u):
    """ "microsecond" for "us"."""
    return _UNITS[u][1]


def trim_sigfig(x, n):
    """x with n significant figures, the rest zeros.

    >>> trim_sigfig(1234.56, 3)
    1230.0
    """
    if not x:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements):
    """Each element once, in the order of their first places."""
    return list(dict.fromkeys(elements))


@boundary
@dataclass(frozen=True)
class TaskSpec:
    """What is measured: statements, labels (see Timer), an environment, and a number of threads."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: "str | None" = None
    sub_label: "str | None" = None
    description: "str | None" = None
    env: "str | None" = None
    num_threads: int = 1

    @property
    def title(self):
        """The label, or the statement, and the label below it."""
        if self.label is not None:
            return f"{self.label}{f': {self.sub_label}' if self.sub_label else ''}"
        return self.stmt if "\n" not in self.stmt else "\n" + _indented(self.stmt)

    def setup_str(self):
        if self.setup in ("pass", "") or not self.setup:
            return ""
        return f"setup: {self.setup}" if "\n" not in self.setup else "setup:\n" + _indented(self.setup)

    def summarize(self):
        """Title, description and setup, a line each."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(line for line in parts if line)


def _indented(text):
    return "\n".join("  " + line for line in text.strip().split("\n"))


@boundary
@dataclass(init=True, repr=False)
class Measurement:
    """Times of one task. number_per_run: how often the statement ran for each of raw_times, in seconds."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: "dict | None" = field(default=None)

    @property
    def times(self):
        """Seconds for each run of the statement."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def mean(self):
        return statistics.fmean(self.times)

    @property
    def iqr(self):
        """Distance between the quartiles, in seconds."""
        return _quantile(self.times, 0.75) - _quantile(self.times, 0.25)

    @property
    def significant_figures(self):
        """Figures of the median that are no noise, at least one: from the spread of the middle half of the times."""
        times, n = sorted(self.times), len(self.raw_times)
        middle = times[n // 4 : math.ceil(3 * n / 4)]
        error = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _FINEST)
        return min(max(math.floor(math.log10(max(self.median, _FINEST) / error)), 1), _MOST_FIGURES)

    @property
    def has_warnings(self):
        return not self.meets_confidence()

    def meets_confidence(self, threshold=_SHAKY):
        """Whether the distance between the quartiles is less than this part of the median."""
        return self.iqr / self.median < threshold if self.median else True

    @property
    def title(self):
        return self.task_spec.title

    @property
    def env(self):
        return self.task_spec.env or ""

    @property
    def as_row_name(self):
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name):
        if name in ("stmt", "setup", "label", "sub_label", "description", "num_threads"):
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @staticmethod
    def merge(measurements):
        """Measurements of the same task as one each, with all their times; runs of other lengths are brought to one."""
        groups = defaultdict(list)
        for m in measurements:
            groups[m.task_spec].append(m)
        merged = []
        for spec, same in groups.items():
            alike = len({m.number_per_run for m in same}) == 1
            number = same[0].number_per_run if alike else 1
            merged.append(Measurement(number, [t * number for m in same for t in m.times], spec))
        return merged

    def __repr__(self):
        unit, scale = select_unit(self.median)
        figures = f"{self.median / scale:.2f} {unit}"
        lines = [f"{type(self).__name__} of {self.task_spec.summarize()}"]
        if len(self.raw_times) > 1:
            figures = f"Median: {figures}\n  IQR:    {self.iqr / scale:.2f} {unit} "
            figures += f"({_quantile(self.times, 0.25) / scale:.2f} to {_quantile(self.times, 0.75) / scale:.2f})"
        lines.append("  " + figures)
        count, threads = len(self.raw_times), self.task_spec.num_threads
        runs = f"{self.number_per_run} run{'s' * (self.number_per_run != 1)}"
        measured = f"{count} measurement{'s' * (count != 1)}"
        lines.append(f"  {measured}, {runs} each, {threads} thread{'s' * (threads != 1)}")
        if self.has_warnings:
            part = self.iqr / self.median
            why = "other programs disturb it" if part > _BAD else "the machine is not quiet"
            lines.append(f"  The quartiles are {part:.0%} of the median apart: {why}")
        return "\n".join(lines)


def _quantile(values, part):
    values = sorted(values)
    at = part * (len(values) - 1)
    low = math.floor(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)
