"""Failing cases as files: a runnable call with a head that says how to replay it. Equal ones are counted, not kept."""

import os
import re
import subprocess
import sys
from pathlib import Path

KEPT = 2  # files for one kind of fault


class Findings:
    """The faults of a run, by kind."""

    def __init__(self, folder):
        self.folder, self.kinds = Path(folder), {}

    def add(self, target, seed, fault):
        """Note a fault, and write it to a file unless enough of its kind are there."""
        text = fault["text"] or _text(target, seed, fault["number"])
        kind = _kind(target, fault, text)
        row = self.kinds.setdefault(kind, {"count": 0, "files": []})
        row["count"] += 1
        if len(row["files"]) < KEPT:
            path = self.folder / f"{target}-{seed}-{fault['number']}.py"
            row["files"].append(path)
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(_head(path, target, seed, fault) + text, errors="backslashreplace")
            print(f"  {kind}\n    {path}", flush=True)

    def report(self):
        """Lines that list every kind with its number and files."""
        for kind, row in sorted(self.kinds.items(), key=lambda item: -item[1]["count"]):
            yield f"{row['count']:6} x {kind}"
            yield from (f"           {_again(path)}" for path in row["files"])


def _kind(target, fault, text):
    """Faults of one kind have the same words, numbers aside, the same call, and the same place in our sources."""
    call = re.search(r"print\((tg[\w.]+)|^# threads: (.+?) with", text, re.M)
    place = re.findall(r"(?:/tinygrad_ext/|tinygrad_ext\.|in tgx_)\S+", fault["trace"])
    what = re.sub(r"-?\d+", "N", fault["what"])[:160]
    return " | ".join([target, what, (call[1] or call[2]) if call else "", place[0][-70:] if place else ""])


def _again(path):
    """The command that replays a file, on the build that this is."""
    target = "fuzz-sanitized" if "asan" in os.environ.get("LD_PRELOAD", "") else "fuzz"
    return f"make {target} ARGS='--replay {path}'"


def _head(path, target, seed, fault):
    said = "\n".join("# " + line for line in (fault["what"] + "\n\n" + fault["trace"]).splitlines())
    case = f"# case: {target} {seed} {fault['number']} from {fault['from']}"
    return f"# {_again(path)}\n{case}\n{said}\n\n"


def _text(target, seed, number):
    """What a case that ended its process would run, written by another process."""
    script = "import sys; from tools.fuzz.__main__ import show; show(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"
    command = [sys.executable, "-c", script, target, str(seed), str(number)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, errors="replace")
    except subprocess.TimeoutExpired:
        return "# making the case does not end\n"
    return run.stdout[:50_000] or f"# making the case fails: {run.stderr[-500:]!r}\n"


def read(path):
    """(target, seed, number, first of its block) of a file."""
    found = re.search(r"^# case: ([\w.]+) (-?\d+) (\d+) from (\d+)$", Path(path).read_text(errors="replace"), re.M)
    if not found:
        raise SystemExit(f"{path} names no case")
    target, *numbers = found.groups()
    return target, *map(int, numbers)
