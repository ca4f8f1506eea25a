"""Timing: every library in turn, round after round, medians.

The time of a call includes the call of the case's closure, for every library alike; this makes our ratios slightly
too large, never too small.
"""

import gc
import os
import statistics
from dataclasses import dataclass, field
from itertools import repeat
from time import perf_counter as clock
from time import sleep

from benchmarks.libraries import OTHERS, Draw
from benchmarks.machine import Watch

# Threads of a library stay awake for some milliseconds after its last call, on the cores that the next one wants.
REST = 0.01 if os.environ.get("OMP_NUM_THREADS", "1") != "1" else 0


@dataclass
class Row:
    """What is known of one case after it ran. Times are medians in seconds; `unit` tells other quantities."""

    name: str
    group: str
    budget: float | None
    values: dict = field(default_factory=dict)  # library -> value
    ratio: float | None = None
    variants: list = field(default_factory=list)  # (variant, values, ratio)
    missing: str = ""  # why our side cannot run it
    foreign: float = 0.0  # share of a core that others used meanwhile
    unit: str = "s"
    beside: str = "torch"  # what the ratio is to
    skipped: dict = field(default_factory=dict)  # library -> why it did not run

    @property
    def mark(self):
        """'ok', 'over', 'missing', or '' where there is nothing to compare."""
        if self.missing:
            return "missing"
        if self.ratio is None or self.budget is None:
            return ""
        return "ok" if self.ratio <= self.budget else "over"


def run(cases, libraries, seed, rounds, seconds, progress=lambda row: None):
    """Rows of all cases, each measured for `seconds` a library and variant, split into rounds."""
    rows = []
    gc.collect()
    gc.freeze()  # the libraries' own objects are not what the collector should walk in a timed loop
    for c in cases:
        with Watch() as watch:
            row = _run_case(c, libraries, seed, rounds, seconds)
        row.foreign = watch.foreign
        rows.append(row)
        progress(row)
    return rows


def _run_case(c, libraries, seed, rounds, seconds):
    row = Row(c.name, c.group, c.budget, beside=c.beside)
    for variant in c.variants:
        calls = {}
        for lib in libraries:
            if lib.name in OTHERS and lib.name not in (*c.also, c.beside):
                continue
            try:
                calls[lib.name] = c.build(lib, Draw(seed, variant.dtype, variant.strided))
                calls[lib.name]()
            except Exception as error:  # a part that does not exist yet must not end the run
                calls.pop(lib.name, None)
                said = f"{type(error).__name__}: {error}".split("\n")[0]
                row.skipped[lib.name] = said
                if lib.name == "tinygrad_ext":
                    row.missing = said
        if "tinygrad_ext" not in calls:
            return row
        values = medians(calls, rounds, seconds)
        row.variants.append((variant, values, _ratio(values, c.beside)))
    row.values = {
        name: statistics.median(v[name] for _, v, _ in row.variants if name in v) for name in row.variants[0][1]
    }
    ratios = [r for _, _, r in row.variants if r is not None]
    row.ratio = statistics.median(ratios) if ratios else None
    return row


def _ratio(values, beside="torch"):
    return values["tinygrad_ext"] / values[beside] if beside in values else None


def medians(calls, rounds, seconds):
    """Median time of each callable, in interleaved rounds."""
    counts = {name: _count(fn, seconds / rounds) for name, fn in calls.items()}
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, fn in calls.items():
            sleep(REST)
            times[name].append(_time(fn, counts[name]))
    return {name: statistics.median(t) for name, t in times.items()}


def _count(fn, seconds):
    """How many calls take about `seconds`; the first few, in which a library may compile, do not count."""
    n = 1
    for _ in range(2):
        fn()
    while (t := _time(fn, n) * n) < seconds / 4 and n < 1 << 22:
        n *= 4 if t < seconds / 16 else 2
    return max(1, round(n * seconds / t))


def _time(fn, n):
    start = clock()
    for _ in repeat(None, n):
        fn()
    return (clock() - start) / n
