"""Cases measured in child processes: import time, plugins, memory of a training loop, installed size."""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.dummies import write_plugins
from benchmarks.runner import Row

_IMPORT = """
import time; start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
"""

_TRAIN = """
import {name} as torch
import numpy as np
def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) * 1024
torch.set_num_threads(1)
nn, F, make = torch.nn, torch.nn.functional, np.random.default_rng(0)
before = peak()
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                      nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))
opt = torch.optim.Adam(model.parameters())
for _ in range(50):
    x = torch.tensor(make.random((64, 1, 8, 8), dtype=np.float32))
    y = torch.tensor(make.integers(0, 10, 64))
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
print(peak() - before)
"""


_DISCOVER = """
import {name}, importlib.metadata
from time import perf_counter
start = perf_counter()
found = {name}.plugins.list()
print(perf_counter() - start if len(found) >= 200 else "too few")
"""


_BUILD = """
import os, tempfile
os.environ["TINYGRAD_EXT_EXTENSIONS_DIR"] = tempfile.mkdtemp()
import {name} as tg
from {name}.registry import scope
from {name}.utils import cpp_extension
from benchmarks.extension_cases import OURS
from time import perf_counter
def build(text):
    mark, start = scope.application.mark(), perf_counter()
    cpp_extension.load_inline("bench_c", c_sources=text)
    time = perf_counter() - start
    scope.application.undo(mark)
    return time
build(OURS)
"""
_COLD = _BUILD + "print(sorted(build(OURS + '/* %d */' % i) for i in range(5))[2])"
_CACHED = _BUILD + "print(sorted(build(OURS) for i in range(51))[25])"


def _child(code, name, folder=None):
    """The number a child process prints, or None when it fails; `folder` stands on its path too."""
    path = [*sys.path, *([str(folder)] if folder else [])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(
        [sys.executable, "-c", code.format(name=name)], env=env, capture_output=True, text=True, check=False
    )
    return (float(done.stdout), "") if done.returncode == 0 else (None, done.stderr.strip().split("\n")[-1])


def _seconds(code, name, folder=None):
    value, error = _child(code, name, folder)
    if value is None:
        raise ChildProcessError(error)
    return value


def import_time(libraries, repeats):
    """Importing us against importing NumPy, each time in a new process."""
    row = Row("import", "process", 1.5)
    times = {"tinygrad_ext": [], "numpy": []}
    for _ in range(repeats + 1):
        for name, found in times.items():
            found.append(_seconds(_IMPORT, name))
    row.values = {name: statistics.median(t[1:]) for name, t in times.items()}  # the first one filled disk caches
    if "torch" in libraries:
        row.values["torch"] = statistics.median(_seconds(_IMPORT, "torch") for _ in range(2))
    row.ratio = row.values["tinygrad_ext"] / row.values["numpy"]
    row.name = "import (ratio to numpy)"
    return row


def start_with_plugins(libraries, repeats):
    """What 50 installed plugins add to an import: starts with and without them in turn."""
    row = Row("import with 50 plugins (extra, ratio to 5 ms)", "process", 1.0)
    times = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        write_plugins(Path(folder), 50)
        for _ in range(3 * repeats):
            for installed, found in times.items():
                found.append(_seconds(_IMPORT, "tinygrad_ext", folder if installed else None))
    row.values = {"tinygrad_ext": statistics.median(times[True]) - statistics.median(times[False])}
    row.ratio = row.values["tinygrad_ext"] / 5e-3
    return row


def discovery(libraries, repeats):
    """The one search for installed plugins, 200 of them on the path."""
    row = Row("discovery of 200 plugins (ratio to 100 ms)", "process", 1.0)
    with tempfile.TemporaryDirectory() as folder:
        write_plugins(Path(folder), 200)
        found = [_child(_DISCOVER, "tinygrad_ext", folder) for _ in range(repeats)]
    row.missing = next((error for value, error in found if value is None), "")
    if not row.missing:
        row.values = {"tinygrad_ext": statistics.median(value for value, _ in found)}
        row.ratio = row.values["tinygrad_ext"] / 0.1
    return row


def training_memory(libraries, repeats):
    """Peak memory that 50 steps of a small CNN add to the imported library."""
    row = Row("peak memory, 50 CNN steps", "process", 1.0, unit="B")
    for name in ("tinygrad_ext", "torch"):
        if name in libraries:
            row.values[name], error = _child(_TRAIN, name)
            if error and name == "tinygrad_ext":
                row.missing = error
    if not row.missing and row.values.get("torch"):
        row.ratio = row.values["tinygrad_ext"] / row.values["torch"]
    return row


def builds(code, name, budget):
    """A probe: load_inline of an op with a derivative, the ratio to `budget` seconds."""

    def probe(libraries, repeats):
        row = Row(f"{name} (ratio to {budget * 1000:g} ms)", "process", 1.0)
        value, row.missing = _child(code, "tinygrad_ext")
        if not row.missing:
            row.values, row.ratio = {"tinygrad_ext": value}, value / budget
        return row

    return probe


def installed_size(libraries, repeats):
    """Bytes of what a wheel installs; the budget is 20 MB, as a share of PyTorch's it is 0.03."""
    row = Row("installed size (ratio to 20 MB)", "process", 1.0, unit="B")
    row.values["tinygrad_ext"] = _size("tinygrad_ext", {".so", ".py", ".pyi", ".pxd"})
    if "torch" in libraries:
        row.values["torch"] = _size("torch", None)
    row.ratio = row.values["tinygrad_ext"] / 20e6
    return row


def _size(name, suffixes):
    folder = Path(importlib.util.find_spec(name).origin).parent
    return sum(
        f.stat().st_size
        for f in folder.rglob("*")
        if f.is_file() and "__pycache__" not in f.parts and (suffixes is None or f.suffix in suffixes)
    )


PROBES = {
    "import": import_time,
    "import with plugins": start_with_plugins,
    "discovery of plugins": discovery,
    "peak memory": training_memory,
    "load_inline": builds(_COLD, "load_inline of a C op", 0.3),
    "load_inline, cached": builds(_CACHED, "load_inline of a C op, built before", 0.005),
    "installed size": installed_size,
}
