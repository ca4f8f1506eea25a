"""Files of a profile besides the trace: stacks for flame graphs, the course of memory, traces in a folder."""

import gzip
import json
import os
import time
from pathlib import Path

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.profiler import page, trace


def stacks(events, path, metric):
    """Lines `outer;inner number`: the program's lines where they were noted, in them slices, and what each took itself,
    in whole microseconds."""
    if metric != "self_cpu_time_total":
        raise ValueError(f"export_stacks: metric is {metric!r}; expected 'self_cpu_time_total'")
    sums = {}
    for e in events:
        names, at = [], e
        while at is not None:
            names.append(at.name)
            lines, at = at.stack, at.cpu_parent
        key = ";".join(name.replace(";", ",") for name in [*reversed(lines), *reversed(names)])
        sums[key] = sums.get(key, 0) + e.self_cpu_time_total
    Path(path).write_text("".join(f"{key} {round(us)}\n" for key, us in sums.items()))


def memory_timeline(events, path):
    """Bytes in use over time: a page for a name that ends with .html, else JSON [[ns, ...], [bytes, ...]], for .gz
    compressed."""
    points = trace.memory(events)
    if not points:
        raise RuntimeError("export_memory_timeline: no bytes were noted; record with profile(profile_memory=True)")
    if str(path).endswith(".html"):
        page.write(events, path)
        return
    data = json.dumps([[t for t, _ in points], [n for _, n in points]]).encode()
    Path(path).write_bytes(gzip.compress(data) if str(path).endswith(".gz") else data)


@boundary
def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """For on_trace_ready: a function that writes each trace into a folder, as `worker.time.pt.trace.json` (`.gz`)."""

    def write(prof):
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{os.uname().nodename}_{os.getpid()}"
        prof.export_chrome_trace(folder / f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}")

    return write
