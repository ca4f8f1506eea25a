"""Instructions of a plain call, counted by valgrind: in a fresh process, and in one where slots, modes and types with
`__torch_function__` were used before.

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
CALLS = ("a + b", "add(a, b)")
CHILD = """
import gc
import tinygrad_ext as tg
gc.disable()
a, b = tg.ones(8), tg.ones(8)
{setup}
def run(a, b, add):     # a function, whose names are not looked up in dicts
    for _ in range({runs}):
        {call}
run(a, b, tg.add)
"""
USE_OVERRIDES = """
from tinygrad_ext.core.callables import SLOTS, set_handler
from tinygrad_ext.overrides import BaseTorchFunctionMode
for slot in SLOTS:
    set_handler(slot, lambda func, types, args, kwargs: func(*args, **kwargs))
a + b
for slot in SLOTS:
    set_handler(slot, None)
with BaseTorchFunctionMode():
    a + b
Sub = type("Sub", (tg.Tensor,), dict())
Duck = type("Duck", (), dict(__torch_function__=lambda *call: None))
a.as_subclass(Sub) + b, tg.add(Duck(), b)
"""


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


def instructions(call, setup, runs, env=ENV):
    """Instructions of one child process."""
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        sys.executable,
        "-c",
        CHILD.format(call=call, setup=setup, runs=runs),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit("callgrind failed:\n" + done.stderr[-2000:])
    return int(found[1])


def per_call(call, setup="", env=ENV):
    """Instructions of one call, the loop around it included, after the code `setup` has run."""
    # once without counting: a module that has no bytecode yet is compiled, which must not fall into one of the two
    subprocess.run([sys.executable, "-c", CHILD.format(call=call, setup=setup, runs=1)], env=env, check=True)
    return (instructions(call, setup, MANY, env) - instructions(call, setup, FEW, env)) / (MANY - FEW)


def main(arguments):
    """Print both counts of each call."""
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    for call in CALLS:
        never, used = per_call(call), per_call(call, USE_OVERRIDES)
        if "--plain" in arguments:
            print(never, used)
        else:
            print(f"{call}, 8 float32: {never:.1f} instructions, {used:.1f} after slots and overrides were used")


if __name__ == "__main__":
    main(sys.argv[1:])
