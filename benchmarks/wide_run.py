"""Runs the rows of benchmarks/wide.py, each in a box of time, in a child process.

A row that hangs, dies or takes too long costs itself alone: the child is stopped and another one goes on. Each row is
written down when it is measured, so an interrupted run continues where it ended. Times are CPU times of the process,
which other processes disturb less than the clock's, and the libraries take turns.
"""

import json
import multiprocessing
import os
import random
import re
import statistics
import time
import warnings
from itertools import repeat
from pathlib import Path
from time import process_time as clock

from benchmarks import wide
from benchmarks.libraries import load

BELIEVED = 1.05  # a ratio above is timed again
ROUNDS, AGAIN = 7, 25  # rounds of the first timing and of the further ones
STOP = 15.0  # seconds after which the child is stopped
SLOW = 0.03  # a call that takes this long with 10k elements is not tried with 1M
OURS, THEIRS = "tinygrad_ext", "torch"


def chosen(specs, only="", sample=0, shard=(1, 1)):
    """The rows to run: those whose family and name match a pattern, a random part of them, every n-th of those."""
    found = [s for s in specs if re.search(only, f"{s.family} {s.name}")]
    if 0 < sample < len(found):
        at = sorted(random.Random(0).sample(range(len(found)), sample))
        found = [found[k] for k in at]
    part, parts = shard
    return found[part - 1 :: parts]


# ---- timing ---------------------------------------------------------------------------------------------------------


def timed(calls, seconds, rounds):
    """Median CPU time of each callable in interleaved rounds of `seconds` together; at least one call of each."""
    once = {name: _time(fn, 1) for name, fn in calls.items()}
    counts, spent = {}, sum(once.values())
    for name, fn in calls.items():
        share = seconds / rounds / len(calls)
        n = max(1, round(share / max(once[name], 1e-8) / 4))
        if n > 1:  # the first call was cold: look again
            n = max(1, round(share / max(_time(fn, n), 1e-8)))
        counts[name] = n
    if spent > seconds:  # one call each fills the box
        return once
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, fn in calls.items():
            times[name].append(_time(fn, counts[name]))
            spent += times[name][-1] * counts[name]
        if spent > 2 * seconds:
            break
    return {name: statistics.median(t) for name, t in times.items()}


def _time(fn, n):
    start = clock()
    for _ in repeat(None, n):
        fn()
    return (clock() - start) / n


def measured(spec, libraries, seconds):
    """The row of a spec, as it stands in the JSON file."""
    row = {"name": spec.name, "group": spec.family, "size": spec.size, "values": {}, "ratio": None, "missing": ""}
    calls, skipped = {}, {}
    for lib in libraries:
        try:
            fn = wide.build(spec, lib)
            fn()
            calls[lib.name] = fn
        except Exception as error:  # what one library cannot run ends no run
            skipped[lib.name] = f"{type(error).__name__}: {error}".split("\n")[0][:150]
    if OURS not in calls:
        if THEIRS in calls:  # where both refuse, the row makes no sense
            row["missing"] = skipped[OURS]
        else:
            row["left out"] = skipped.get(OURS, "")
        return row
    if THEIRS in skipped:
        row["skipped"] = skipped[THEIRS]
    row["tries"] = []
    for box, rounds in ((seconds, ROUNDS), (4 * seconds, AGAIN), (8 * seconds, AGAIN)):
        row["values"] = timed(calls, box, rounds)
        if THEIRS not in calls:
            break
        row["ratio"] = row["values"][OURS] / max(row["values"][THEIRS], 1e-12)
        row["tries"].append(round(row["ratio"], 3))
        if row["ratio"] <= BELIEVED:
            break
    return row


# ---- the child and who asks it --------------------------------------------------------------------------------------


def serve(pipe, threads, seconds):
    """The child: measures what it is sent until None comes."""
    warnings.simplefilter("ignore")
    _bound_memory()
    libraries = [lib for lib in load(threads) if lib.name in (OURS, THEIRS)]
    pipe.send([lib.name for lib in libraries])
    while (spec := pipe.recv()) is not None:
        pipe.send(measured(spec, libraries, seconds))


def _bound_memory():
    """An operand that the machine has no room for is an error, not the end of other processes."""
    try:
        import resource

        room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
    except (ImportError, ValueError, OSError):
        pass


class Child:
    """A process that measures rows, replaced when one stops it."""

    def __init__(self, threads, seconds, stop=STOP, serve=serve):
        self._given, self._stop, self._process = (serve, threads, seconds), stop, None

    def measure(self, spec):
        """A row; one that stopped the child says why."""
        if self._process is None:
            self._start()
        self._pipe.send(spec)
        try:
            if self._pipe.poll(self._stop):
                return self._pipe.recv()
            why = f"took longer than {self._stop:g} seconds"
        except (EOFError, OSError):
            self._process.join()
            why = f"the process died ({self._process.exitcode})"
        self.close()
        return {"name": spec.name, "group": spec.family, "size": spec.size, "values": {}, "ratio": None, "stopped": why}

    def _start(self):
        serve, threads, seconds = self._given
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=serve, args=(far, threads, seconds), daemon=True)
        self._process.start()
        far.close()
        self._pipe.recv()

    def close(self):
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


# ---- a run ----------------------------------------------------------------------------------------------------------


def run(specs, child, part=None, minutes=None, progress=lambda done, total, row: None):
    """(rows, whether all were measured): those in the file `part` are taken from there, new ones are added to it."""
    known = {row["name"]: row for row in _lines(part)}
    rows, slow, end = [], set(), time.monotonic() + 60 * minutes if minutes else None
    with open(part or os.devnull, "a") as file:
        if known:
            file.write("\n")  # ends a line that was cut off
        try:
            for k, spec in enumerate(specs):
                if end and time.monotonic() > end:
                    return rows, False
                row = known.get(spec.name)
                if row is None:
                    row = _too_slow(spec, slow) or child.measure(spec)
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                _remember(spec, row, slow)
                rows.append(row)
                progress(k + 1, len(specs), row)
        except KeyboardInterrupt:
            return rows, False
        finally:
            child.close()
    return rows, True


def _too_slow(spec, slow):
    """A row that is left out because the same op took too long before."""
    if spec.kind == "op" and (spec.what, spec.size) in slow:
        why = "its op takes too long"
        return {
            "name": spec.name,
            "group": spec.family,
            "size": spec.size,
            "values": {},
            "ratio": None,
            "left out": why,
        }
    return None


def _remember(spec, row, slow):
    if spec.kind != "op":
        return
    if "stopped" in row or max(row["values"].values(), default=0) > 1:
        slow |= {(spec.what, size) for size in ("10k", "1M") if size != "10k" or spec.size != "1M"}
    if spec.size == "10k" and max(row["values"].values(), default=0) > SLOW:
        slow.add((spec.what, "1M"))


def _lines(path):
    """Rows of an interrupted run; a last line that was cut off is measured again."""
    if path is None or not Path(path).exists():
        return
    for line in Path(path).read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass
