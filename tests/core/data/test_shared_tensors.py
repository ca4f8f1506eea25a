"""Tensors that one thread reads while another writes to them, resizes them or gives them other memory.

The races are in tests/helpers/races.py, which runs as a program: what it must not do is crash.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[2] / "helpers"


def run(program, *arguments):
    """The last line of a program that must end by itself.

    Blocks of 64 kB and more leave the process as soon as they are freed: who still reads them does not go on.
    """
    done = subprocess.run(
        [sys.executable, str(HELPERS / program), *arguments],
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"ended with {done.returncode} in: {last}\n{done.stderr[-2000:]}"
    return last


@pytest.mark.slow
@pytest.mark.parametrize("what", ["index", "mask", "values", "memory"])
def test_a_thread_that_spoils_what_an_op_reads_crashes_nothing(what):
    assert run("races.py", what) == "ended"
