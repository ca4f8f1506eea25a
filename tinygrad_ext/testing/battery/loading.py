"""What importing an installed plugin costs and does to the host, found out in a fresh interpreter."""

import json
import os
import sys
import tempfile

from tinygrad_ext.plugins import child
from tinygrad_ext.testing.battery.check import check
from tinygrad_ext.testing.battery.result import NotApplicable

PLUGIN_CHECKS = {}
BUDGET = 1.0  # seconds of the processor, so that other programs do not count; all that the plugin imports included
PATIENCE = 600.0
RUNS = 3  # the quickest counts

# `python -c` looks into the current folder first, where a checkout of this package may lie that is not built
PROBE = """
import sys
sys.path[:] = filter(None, sys.path)
import json, time, warnings
import tinygrad_ext as tg, tinygrad_ext.nn, tinygrad_ext.plugins as plugins
from tinygrad_ext import registry

plain = lambda category: category.__module__ == "builtins"  # libraries silence warnings of their own

def host():
    return {
        "default dtype": str(tg.get_default_dtype()),
        "number of threads": tg.get_num_threads(),
        "grad mode": tg.is_grad_enabled(),
        "random state": tg.random.get_rng_state().tolist(),
        "attributes of Tensor": {n: id(v) for n, v in vars(tg.Tensor).items() if n not in registry.methods},
        "attributes of tinygrad_ext": {n: id(v) for n, v in vars(tg).items() if callable(v) and n not in sys.modules},
        "warning filters": [f"{f[0]} {f[2].__name__}" for f in warnings.filters if not (f[1] or f[3]) and plain(f[2])],
    }

plugins.list()
before = host()
start = time.process_time()
plugins.load(sys.argv[1])
seconds = time.process_time() - start
after = host()
changed = {}
for key in before:
    if isinstance(before[key], dict):  # names that were first used meanwhile are no change
        names = [n for n in before[key] if before[key][n] != after[key].get(n)]
        names += [n for n in after[key] if n not in before[key] and key == "attributes of Tensor"]
        if names:
            changed[key] = ", ".join(names)
    elif before[key] != after[key]:
        changed[key] = "" if key == "random state" else f"{before[key]} -> {after[key]}"
with open(sys.argv[2], "w") as f:
    json.dump({"seconds": seconds, "changed": changed}, f)
"""


class PluginSubject:
    """A plugin as a whole. Attributes: name, installed (whether an entry point names it), kind ("plugin")."""

    kind = "plugin"

    def __init__(self, info):
        self.name = info.name
        self.installed = any(not e.startswith("plugins.register") for e in info.entry_points)

    def why_not(self, check):
        """Only what is installed can be imported by another interpreter."""
        return None if self.installed else "it is registered by this program, not installed"


def probe(name, *options):
    """(what the probe found, what was printed) of a fresh interpreter that loads a plugin."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TINYGRAD_EXT_STRICT_PLUGINS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report")
        program = [sys.executable, *options, "-c", PROBE, name, report]
        status, printed = child.run(program, seconds=PATIENCE, env=env)
        found = child.read_text(report)
    if status in (child.TIMEOUT, child.FLOOD):
        limit = f"{PATIENCE:g} seconds" if status == child.TIMEOUT else f"{child.LIMIT >> 20} MB of output"
        raise AssertionError(f"a fresh interpreter that loads it was ended after {limit}:\n{printed[-1500:]}")
    if status != 0 or not found:
        raise AssertionError(f"a fresh interpreter cannot load it:\n{printed[-1500:]}")
    return json.loads(found), printed


@check(PLUGIN_CHECKS, "import_cost", each="subject")
def import_cost(subject):
    """Loading it takes at most a second of the processor, with everything that it imports."""
    seconds = min(_seconds(subject.name) for _ in range(RUNS))
    if seconds > BUDGET:
        raise AssertionError(
            f"loading takes {seconds:.2f} s, at most {BUDGET} s are allowed; the dearest modules:\n"
            f"{_dearest(subject.name)}\nImport what an op needs inside the op"
        )


def _seconds(name):
    return probe(name)[0]["seconds"]


def _dearest(name, count=5):
    rows = []
    for line in probe(name, "-X", "importtime")[1].splitlines():
        own, _, rest = line.removeprefix("import time:").partition("|")
        if own.strip().isdigit():
            rows.append((int(own), rest.rpartition("|")[2].strip()))
    return "\n".join(f"  {own / 1e3:7.1f} ms  {module}" for own, module in sorted(rows, reverse=True)[:count])


@check(PLUGIN_CHECKS, "host_untouched", each="subject")
def host_untouched(subject):
    """Loading it changes no setting of the host, patches nothing and prints nothing."""
    found, said = probe(subject.name)
    changed = "; ".join(f"{what} {how}".strip() for what, how in found["changed"].items())
    if changed:
        raise AssertionError(f"loading it changes: {changed}")
    printed = " ".join(said.split())
    if printed:
        raise AssertionError(f"loading it prints: {printed[:300]}")


__all__ = ["PLUGIN_CHECKS", "NotApplicable", "PluginSubject"]
