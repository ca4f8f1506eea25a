"""How far a build is: one line that is written over on a terminal, elsewhere a line for every tenth part."""

import io
import os
import re
import sys
import threading


def processors():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Progress:
    """Counts steps; `step(name)` may come from any thread."""

    def __init__(self, title, total, out=None):
        self.title, self.total, self.out = title, total, out or sys.stdout
        self.done, self._lock = 0, threading.Lock()
        if total:
            self._write(f"{title}: {total}\n")

    def step(self, name):
        with self._lock:
            self.done += 1
            self.show(self.done, name)

    def show(self, done, name):
        if self.out.isatty():
            end = "\n" if done == self.total else ""
            self._write(f"\r\x1b[K  {done}/{self.total}  {name if done < self.total else 'done'}{end}")
        elif done * 10 // self.total > (done - 1) * 10 // self.total:
            self._write(f"  {done}/{self.total}\n")

    def _write(self, text):
        self.out.write(text)
        self.out.flush()


class CythonProgress(io.TextIOBase):
    """Takes the place of standard output while Cython translates: of its lines only the count is shown.

    They come from several processes, each of which knows the number of its module and of all.
    """

    LINE = re.compile(r"\[ *(\d+)/(\d+)\] Cythonizing (\S+)")

    def __init__(self, jobs):
        self.out, self.title = sys.stdout, f"translating modules with Cython, {jobs} at a time"

    def write(self, text):
        for number, total, name in self.LINE.findall(text):
            if number == "1":
                self.out.write(f"{self.title}: {total}\n")
            progress = Progress("", 0, self.out)
            progress.total = int(total)
            progress.show(int(number), name)
        return len(text)
