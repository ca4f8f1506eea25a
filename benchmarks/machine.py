"""The machine: what it is, and whether somebody else is using it."""

import os
import platform
import time

TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
TOO_MUCH = 0.10  # share of one core that others may use before figures are doubtful


def _busy():
    """CPU seconds all processes have used since boot; None where /proc/stat does not exist."""
    try:
        with open("/proc/stat") as f:
            user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, f.readline().split()[1:])
    except OSError:
        return None
    return (user + nice + system + irq + softirq) / TICK


def _own():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


class Watch:
    """Context: `foreign` is the share of one core that other processes used meanwhile."""

    foreign = 0.0

    def __enter__(self):
        self._start = time.perf_counter(), _busy(), _own()
        return self

    def __exit__(self, *_):
        wall, busy, own = self._start
        wall = time.perf_counter() - wall
        if busy is not None and wall > 0.05:  # below that the kernel's ticks are too coarse
            self.foreign = max(0.0, (_busy() - busy - (_own() - own)) / wall)


def load_average():
    """The one-minute load, or None."""
    try:
        with open("/proc/loadavg") as f:
            return float(f.read().split()[0])
    except OSError:
        return None


def cpu_name():
    """Model name of the processor."""
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.partition(":")[2].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def describe(libraries, threads):
    """What the head of the report says, as a dict."""
    from tinygrad_ext.core.loops.blas import blas_info
    from tinygrad_ext.core.loops.loop_tables import instruction_set

    return {
        "cpu": f"{cpu_name()}, {os.cpu_count()} cores",
        "blas": blas_info(),
        "loops": instruction_set(),
        "threads": threads,
        "load": load_average(),
        "python": platform.python_version(),
        "versions": {lib.name: lib.module.__version__ for lib in libraries if hasattr(lib.module, "__version__")},
    }
