"""Instructions of hot paths, counted by valgrind, beside the committed counts.

    python -m tools.count_instructions [--only TEXT]        print the counts of tools/hot_paths.py
    python -m tools.count_instructions --check              fail where one has grown by more than 15 %
    python -m tools.count_instructions --write              write them to tools/instructions.json
    python -m tools.count_instructions --levels [--plain]   a plain call before and after levels and overrides were used

A child runs each path many times between two marks, calls of a function of Python that nothing else calls; callgrind
writes down its counts there, so the start of the interpreter drops out. Instructions repeat to less than 1 %, also on a
busy machine, where times do not. They depend on Python, compiler and processor kind, so the file keeps them by these,
and where there are none for a machine's own the check says that it compares nothing. Loops are the plain ones, without
AVX: valgrind knows no AVX-512, and what is counted is the way to them.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMMITTED = ROOT / "tools" / "instructions.json"
ALLOWED = 0.15  # how far a count may grow
RUNS_OF_A_PATH = 50
WARM, RUNS = 1_000, 5_000
CALLS = ("a + b", "add(a, b)")
CHILD = """
import gc, sys
import tinygrad_ext as tg
gc.disable()
a, b = tg.ones(8), tg.ones(8)
def use():
    from tinygrad_ext.core.call.levels import Observer
    from tinygrad_ext.overrides import BaseTorchFunctionMode
    class Pass(Observer):
        def process(self, operation, args):
            return operation(*args)
    with Pass():
        a + b
    with BaseTorchFunctionMode():
        a + b
    Sub = type("Sub", (tg.Tensor,), dict())
    Duck = type("Duck", (), dict(__torch_function__=lambda *call: None))
    a.as_subclass(Sub) + b, tg.add(Duck(), b)
    class Plugin:
        def __init__(self, k):
            self.k = k
        @tg.hookimpl
        def tgx_register_ops(self, register):
            schema = "p%d::double_%d(Tensor self) -> Tensor" % (self.k, self.k)
            register(schema, compose=lambda self: self + self, variants="function method inplace")
        @tg.hookimpl
        def tgx_register_overrides(self, register):
            register("nowhere%d" % self.k, lambda func, types, args, kwargs: NotImplemented)
    for k in range(50):
        tg.plugins.register("p%d" % k, Plugin(k))
    a.double_49()
for prepare in (lambda: None, use):
    prepare()
    for call in {calls}:
        code = "def run(a, b, add, runs):\\n for _ in range(runs):\\n  " + call
        exec(code)          # in a function, whose names are not looked up in dicts
        run(a, b, tg.add, {warm})
        sys.setrecursionlimit(1000)
        run(a, b, tg.add, {runs})
        sys.setrecursionlimit(1000)
"""
MARK = "Py_SetRecursionLimit"


# the hash seed decides collisions in dicts, the fill of Python's memory pools what an allocation costs; valgrind knows
# no AVX-512
ENV = {
    **os.environ,
    "PYTHONHASHSEED": "0",
    "PYTHONMALLOC": "malloc",
    "PYTHONPATH": str(ROOT),
    "TINYGRAD_EXT_ISA": "base",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "Haswell",
    "PYTHONDONTWRITEBYTECODE": "",
}


def counted(command, count, runs):
    """Instructions of a run between marks 1 and 2, 3 and 4, ... that a command makes, of `count` such pairs."""
    if shutil.which("valgrind") is None:
        sys.exit("valgrind, which counts, is not installed: apt-get install valgrind (or dnf, brew install valgrind)")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        valgrind = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}"]
        done = subprocess.run([*valgrind, *command], env=ENV, cwd=ROOT, capture_output=True, text=True, check=False)
        # a file for what came before each mark: the start, and then in turn the counted runs and what lies between them
        files = [Path(f"{out}.{2 * i + 2}") for i in range(count)]
        if done.returncode or not all(f.exists() for f in files):
            sys.exit("callgrind failed:\n" + done.stderr[-2000:])
        return [int(re.search(r"^(?:totals|summary): (\d+)", f.read_text(), re.M)[1]) / runs for f in files]


def instructions():
    """(before, after) of each of CALLS: its instructions, the loop around it included, and those once all was used."""
    found = counted([sys.executable, "-c", CHILD.format(calls=CALLS, warm=WARM, runs=RUNS)], 2 * len(CALLS), RUNS)
    return list(zip(found[: len(CALLS)], found[len(CALLS) :], strict=True))


def paths(names):
    """{name: instructions of a call} of hot paths; what the loop around them takes is taken off."""
    command = [sys.executable, "-m", "tools.hot_paths", str(RUNS_OF_A_PATH), *names]
    empty, *found = counted(command, len(names) + 1, RUNS_OF_A_PATH)
    return {name: round(count - empty) for name, count in zip(names, found, strict=True)}


def environment():
    """What counts depend on: Python, the compiler that built the package, and the kind of processor."""
    built = next((ROOT / "tinygrad_ext" / "core").rglob("*.so")).read_bytes()
    found = re.search(rb"(GCC|clang)[^\0]{0,80}? (\d+)\.\d+\.\d+", built)
    compiler = f"{found[1].decode().lower()} {found[2].decode()}" if found else "an unknown compiler"
    return f"Python {platform.python_version().rpartition('.')[0]}, {compiler}, {platform.machine()}"


def judged(committed, now, allowed=ALLOWED):
    """(lines of a table of what changed by more than `allowed` or has no count, whether something grew or has none)."""
    lines, bad = [], False
    for name, count in now.items():
        before = committed.get(name)
        if before is None:
            lines.append(f"{name:<32} {'':>9} {count:>9}  has no committed count")
            bad = True
        elif abs(count - before) > allowed * before:
            grew = count > before
            word = "GREW" if grew else "fell: write it down, so that it stays"
            lines.append(f"{name:<32} {before:>9} {count:>9} {count / before - 1:>+7.1%}  {word}")
            bad |= grew
    if lines:
        lines.insert(0, f"{'path':<32} {'committed':>9} {'now':>9} {'change':>7}")
    return lines, bad


def check(now, here, file=COMMITTED):
    """Compare with the committed counts; the status to exit with."""
    committed = json.loads(file.read_text())
    if here not in committed:
        print(f"nothing is compared: {file.name} has counts for {'; '.join(committed)}, and this is {here}.")
        print("`python -m tools.count_instructions --write` on the state to compare with adds them.")
        return 0
    lines, bad = judged(committed[here], now)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{len(now)} paths counted; {here}; allowed is {ALLOWED:.0%} more than committed")
    if bad:
        print("If the growth is wanted: python -m tools.count_instructions --write, and say why in the change.")
    return int(bad)


def write(now, here, file=COMMITTED):
    """Put counts into the file, beside those of other environments."""
    committed = json.loads(file.read_text()) if file.exists() else {}
    committed[here] = {**committed.get(here, {}), **now}
    file.write_text(json.dumps(committed, indent=1) + "\n")


def levels(plain):
    """Print both counts of each of CALLS."""
    for call, (never, used) in zip(CALLS, instructions(), strict=True):
        if plain:
            print(never, used)
        else:
            print(
                f"{call}, 8 float32: {never:.1f} instructions, {used:.1f} after levels and overrides were used "
                "and with fifty plugins"
            )


def main(words=None):
    """Count, and print, compare or write; the status to exit with."""
    p = argparse.ArgumentParser(prog="python -m tools.count_instructions", description="Instructions of hot paths.")
    p.add_argument("--only", metavar="TEXT", default="", help="only paths whose name contains TEXT")
    p.add_argument("--check", action="store_true", help=f"fail where a count has grown by more than {ALLOWED:.0%}%")
    p.add_argument("--write", action="store_true", help=f"write the counts to {COMMITTED.relative_to(ROOT)}")
    p.add_argument("--levels", action="store_true", help="a plain call before and after levels and overrides were used")
    p.add_argument("--plain", action="store_true", help="... as numbers alone")
    options = p.parse_args(words)
    if options.levels:
        return levels(options.plain)
    from tools.hot_paths import PATHS

    names = [name for name in PATHS if options.only in name]
    if not names:
        p.error(f"no path's name contains {options.only!r}; there are: {', '.join(PATHS)}")
    now, here = paths(names), environment()
    if options.write:
        write(now, here)
    if options.check:
        return check(now, here)
    print(*(f"{name:<32} {count:>9}" for name, count in now.items()), here, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
