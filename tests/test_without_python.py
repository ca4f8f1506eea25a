"""The kernels as a library without Python: a program in C calls each of them and finds the bits of eager mode."""

import shutil
import subprocess
import sys

import pytest

from tests.helpers import c_cases
from tinygrad_ext.testing import sweep
from tools import library

needs_compiler = pytest.mark.skipif(not shutil.which(library.COMPILER[-1]), reason="there is no C compiler")


@pytest.fixture(scope="module")
def program():
    return library.build()


@needs_compiler
def test_every_kernel_and_loop_gives_eager_s_bits_without_python(program, tmp_path):
    path = tmp_path / "cases"
    called = set(c_cases.write_with_own_products(path))
    done = subprocess.run([program, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    in_c = {op.name for op in sweep.ops() if op.kernel_kind in ("kernel", "pointwise")}
    in_c -= {op.name for op in sweep.ops() if op.record.kernel in c_cases.of_lapack()} | set(c_cases.COMPUTED)
    assert not in_c - called, f"no sample of {sorted(in_c - called)} can be called from C"


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="nm's words are those of Linux")
def test_the_library_needs_neither_python_nor_numpy(program):
    needed = subprocess.run(
        ["nm", "-D", "--undefined-only", program.parent / "libtgx.so"], capture_output=True, text=True, check=True
    )
    assert not [line for line in needed.stdout.splitlines() if " Py" in line or " _Py" in line or "npy" in line.lower()]
