"""The kernels as a library without Python: `python -m tools.library` makes build/library/libtgx.so and a test program.

Of the package's own objects, whose only include path is kernels/: neither Python's nor NumPy's headers are in reach.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from setup import CASTS, COMPILER, JOBS, KERNEL_FLAGS, KERNELS, PACKAGE, generate, kernel_object, library  # noqa: E402

FOLDER = ROOT / "build" / "library"
# besides what kernels need: the threads, the caller, plans, the products, the pointwise loops and the random stream
EMITTER = ("emit", "emit_formula", "emit_memory", "emit_vector", "emit_x86")
RANDOM = ("random", "random_sample", "random_state")
PARALLEL = ("parallel", "parallel_blas", "parallel_cores")
MORE = ("alone", "blas_library", *EMITTER, "gemm", *PARALLEL, "plan", "program", *RANDOM, "wide")


def sources():
    """All C files of the library."""
    loops = (f"kernels/{c.name}" for c in sorted(KERNELS.glob("loops_*_gen.c")))
    names = {*library(KERNELS), *(f"kernels/{stem}.c" for stem in MORE), *loops, *CASTS}
    return [PACKAGE / name for name in sorted(names)]


def build():
    """Compile what is stale, link the library and the program; returns the program's path."""
    generate()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(JOBS) as pool:
        objects = list(pool.map(kernel_object, sources()))
    shared, program = FOLDER / "libtgx.so", FOLDER / "table"
    tail = ["-lm", "-lpthread"]
    subprocess.run([*COMPILER, "-shared", *map(str, objects), "-o", str(shared), *tail], check=True)
    main = ROOT / "tests" / "c" / "table.c"
    command = [*COMPILER, *KERNEL_FLAGS, str(main), *map(str, objects), "-o", str(program), *tail]
    subprocess.run(command, cwd=ROOT, check=True)
    return program


if __name__ == "__main__":
    print(build())
