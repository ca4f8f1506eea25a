"""Instructions of `a + b`, counted by valgrind: with slots never filled, and after all were filled and emptied.

    python tools/count_instructions.py [--plain]

A child runs the op few times and then many times; the difference over the number of runs is the cost of one call, the
start of the interpreter dropping out. Instructions repeat exactly where times do not.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FEW, MANY = 2_000, 12_000
CHILD = """
import gc, sys
import tinygrad_ext as tg
from tinygrad_ext.core.callables import SLOTS, set_handler
gc.disable()
a, b = tg.ones(8), tg.ones(8)
if {filled}:
    for slot in SLOTS:
        set_handler(slot, lambda func, types, args, kwargs: func(*args, **kwargs))
    a + b
    for slot in SLOTS:
        set_handler(slot, None)
def run(a, b):      # a function, whose names are not looked up in dicts
    for _ in range({runs}):
        a + b
run(a, b)
"""


def instructions(filled, runs):
    """Instructions of one child process."""
    # the hash seed decides collisions in dicts; valgrind knows no AVX-512
    env = {
        **os.environ,
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(ROOT),
        "TINYGRAD_EXT_ISA": "base",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        sys.executable,
        "-c",
        CHILD.format(filled=filled, runs=runs),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit("callgrind failed:\n" + done.stderr[-2000:])
    return int(found[1])


def per_call(filled):
    """Instructions of one `a + b`, the loop around it included."""
    return (instructions(filled, MANY) - instructions(filled, FEW)) / (MANY - FEW)


def main(arguments):
    """Print both counts."""
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    never, emptied = per_call(False), per_call(True)
    if "--plain" in arguments:
        print(never, emptied)
    else:
        print(f"a + b, 8 float32: {never:.1f} instructions, {emptied:.1f} after the slots were filled and emptied")


if __name__ == "__main__":
    main(sys.argv[1:])
