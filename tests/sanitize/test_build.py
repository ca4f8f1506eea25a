"""The sanitizer build sees a byte too far and memory after its release, and its vector kernels are instrumented too.

Each fault is made in a process of its own, by the C library's memcpy, which the sanitizer watches.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg

pytestmark = pytest.mark.skipif("asan" not in os.environ.get("LD_PRELOAD", ""), reason="runs on the sanitizer build")


def report(program):
    """What a program says before the sanitizer ends it."""
    head = "import ctypes, tinygrad_ext as tg\n"
    done = subprocess.run([sys.executable, "-c", head + program], capture_output=True, text=True, errors="replace")
    assert done.returncode == 99, f"the sanitizer saw nothing: {done.stdout}{done.stderr[-500:]}"
    return done.stderr


@pytest.mark.parametrize("elements", [1, 3, 100, 70_000])
def test_a_block_is_as_long_as_its_tensor(elements):
    program = f"t = tg.ones({elements}); ctypes.string_at(t.data_ptr(), t.nbytes); print('inside')\n"
    said = report(program + "ctypes.string_at(t.data_ptr(), t.nbytes + 1)")
    assert "heap-buffer-overflow" in said


@pytest.mark.parametrize("elements", [3, 70_000])
def test_released_memory_is_not_kept(elements):
    said = report(f"t = tg.ones({elements}); at = t.data_ptr(); del t; ctypes.string_at(at, 4)")
    assert "heap-use-after-free" in said


def test_released_tensors_are_not_kept():
    said = report("at = id(tg.ones(3)); ctypes.string_at(at, 4)")
    assert "heap-use-after-free" in said


def has_functions(path):
    """Some instruction sets have a table without an entry, and nothing but what the sanitizer adds."""
    done = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True)
    symbols = [line.split()[1:] for line in done.stdout.splitlines()]
    return any(kind in "tT" and not name.startswith("_sub_") for kind, name in symbols)


@pytest.mark.parametrize("level", ["base", "avx2", "avx512"])
def test_kernels_of_every_instruction_set_are_instrumented(level):
    built = (Path(tg.__file__).parent.parent / "build").rglob(f"*_{level}_gen.o")
    objects = [o for o in built if has_functions(o)]
    assert len(objects) > 20
    bare = [o.name for o in objects if b"__asan_report_load" not in o.read_bytes()]
    assert not bare
