"""Instructions of a plain call, counted by valgrind: in a fresh process, and in one where levels, modes and types with
`__torch_function__` were used before and fifty plugins are loaded.

    python tools/count_instructions.py [--plain]

A child runs each op many times between two marks, calls of a function of Python that nothing else calls; callgrind
writes down its counts there, so the start of the interpreter drops out. Instructions repeat exactly where times do not.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
WARM, RUNS = 1_000, 5_000
CALLS = ("a + b", "add(a, b)")
CHILD = """
import gc, sys
import tinygrad_ext as tg
gc.disable()
a, b = tg.ones(8), tg.ones(8)
if {used}:
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
    "PYTHONDONTWRITEBYTECODE": "",
}


def instructions(used):
    """Instructions of each of CALLS, the loop around it included, in one process."""
    code = CHILD.format(used=used, calls=CALLS, warm=WARM, runs=RUNS)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        command = ["valgrind", "--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={out}"]
        done = subprocess.run(
            [*command, sys.executable, "-c", code], env=ENV, capture_output=True, text=True, check=False
        )
        # a file for what came before each mark: the start, and then in turn the counted runs and what lies between them
        files = [Path(f"{out}.{2 * i + 2}") for i in range(len(CALLS))]
        if done.returncode or not all(f.exists() for f in files):
            sys.exit("callgrind failed:\n" + done.stderr[-2000:])
        return [int(re.search(r"^(?:totals|summary): (\d+)", f.read_text(), re.M)[1]) / RUNS for f in files]


def main(arguments):
    """Print both counts of each call."""
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    for call, never, used in zip(CALLS, instructions(False), instructions(True), strict=True):
        if "--plain" in arguments:
            print(never, used)
        else:
            print(
                f"{call}, 8 float32: {never:.1f} instructions, {used:.1f} after levels and overrides were used "
                "and with fifty plugins"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
