"""Loads one plugin in a process of its own: `probe` starts it and tells how it ended, `load` is what runs there.

A segmentation fault, os._exit or an endless loop ends only that process. faulthandler writes where it stood, also
while a C function holds the interpreter, because its watchdog is a thread without Python.
"""

import faulthandler
import json
import re
import sys
import tempfile
from pathlib import Path

from tinygrad_ext.plugins import child

SHOWN = 10_000  # characters of what was printed that are reported
GRACE = 15.0  # seconds beyond the time limit for Python and tinygrad_ext to start
BEGIN, END = "tinygrad_ext: load begins", "tinygrad_ext: load ends"  # in stderr, around the plugin's import times
# the parent's sys.path before anything is imported: a file json.py of the current folder must not run
_START = "import sys; sys.path[:] = sys.argv[2:]; from tinygrad_ext.cli.probe import load; load(sys.argv[1])"


def probe(plugin, timeout):
    """Load a plugin elsewhere. Returns a dict:

    end: "loaded", "failed" (it raised), "crash", "hang", "flood" (it printed without end) or "exit" (it ended the
    process); report: what `load` wrote, or None; status: of plugins.child.run; fault: faulthandler's text; output: what
    was printed; imports: [(module, ms)].
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {name: str(Path(folder, name)) for name in ("report", "fault")}
        order = {**files, "plugin": identity(plugin), "timeout": timeout}
        program = [sys.executable, "-X", "importtime", "-c", _START, json.dumps(order), *sys.path]
        status, printed = child.run(program, seconds=timeout + GRACE)
        report, fault = child.read_text(files["report"]), child.cut(child.read_text(files["fault"]), SHOWN)
    output, imports = _split(printed)
    report = _report(report)
    return {
        "end": _how_it_ended(status, fault, report),
        "report": report,
        "status": status,
        "fault": fault,
        "output": child.cut(output, SHOWN),
        "imports": imports,
    }


def _report(text):
    try:
        return json.loads(text) if text else None
    except ValueError:  # a plugin may write there, too
        return None


def _how_it_ended(status, fault, report):
    if status == child.FLOOD:
        return "flood"
    if status == child.TIMEOUT or fault.startswith("Timeout ("):
        return "hang"
    if status < 0:
        return "crash"
    if report is None or (status and not report["failure"]):
        return "exit"
    return "failed" if report["failure"] else "loaded"


def identity(plugin):
    """What tells a plugin from all others, in every process."""
    return [plugin.name, plugin.value, plugin.owner.distribution, plugin.location]


def _split(text):
    """(what was printed, [(module, ms of its own)] of what was imported between the marks)."""
    line = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)\n?")
    loading = text.partition(BEGIN)[2].partition(END)[0]
    printed = re.sub(r"import time: .*\n?", "", text).replace(BEGIN + "\n", "").replace(END + "\n", "")
    return printed.strip(), [(m[2], int(m[1]) / 1e3) for m in line.finditer(loading)]


# ---- in the other process ------------------------------------------------------------------------------------------


def load(order):
    """Load the plugin and write down what became of it."""
    order = json.loads(order)
    fault = open(order["fault"], "w")  # noqa: SIM115  open until the process ends, where a crash is written down too
    faulthandler.enable(fault)
    # lazy: by now a crash would be told. hooks is loaded here so that its time is not the plugin's
    from tinygrad_ext import plugins
    from tinygrad_ext.plugins import fence, hooks, loader, table  # noqa: F401

    plugin = next(p for p in table.everything() if identity(p) == order["plugin"])
    plugins.enable(plugin.owner.distribution)
    faulthandler.dump_traceback_later(order["timeout"], exit=True, file=fault)
    print(BEGIN, file=sys.stderr, flush=True)
    try:
        loader.load(plugin, raising=True)
        way_out = ""
    except BaseException as error:
        way_out = fence.way_out(plugin, error)
    print(END, file=sys.stderr, flush=True)
    part = Path(order["report"] + ".part")
    part.write_text(json.dumps({**_facts(plugin), "way_out": way_out}))
    part.rename(order["report"])  # whole or not at all: a thread of the plugin may end the process here


def _facts(plugin):
    from tinygrad_ext import registry  # lazy: as in load
    from tinygrad_ext.plugins.info import info_of  # lazy: as in load

    i = info_of(plugin)
    return {
        "failure": plugin.failure._asdict() if plugin.failure else None,
        "state": i.state,
        "reason": i.reason,
        "milliseconds": i.milliseconds,
        "ops": i.ops,
        "modules": i.modules,
        "overrides": i.overrides,
        "devices": i.devices,
        "dtypes": i.dtypes,
        "methods": [f"Tensor.{name}" for name in plugin.scope.keys(registry.methods)],
        "requires_api": getattr(sys.modules.get(plugin.module), "requires_api", None),
    }
