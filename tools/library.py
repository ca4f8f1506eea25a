"""The kernels as a library without Python: `python -m tools.library` makes build/library/libtgx.so and a test program.

Compiled with the package's own flags, and with no include path but kernels/: neither Python's nor NumPy's headers are
in reach.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from setup import CFLAGS, JOBS, PACKAGE, generate, included, library  # noqa: E402  the flags stand in setup.py

FOLDER = ROOT / "build" / "library"
COMPILER = os.environ.get("CC", "cc").split()
# besides what kernels need: the threads, the caller, plans, the products, the pointwise loops and the random stream
EMITTER = ("emit", "emit_formula", "emit_memory", "emit_vector", "emit_x86")
MORE = ("alone", "blas_library", *EMITTER, "gemm", "parallel", "plan", "program", "random", "random_sample", "wide")


def sources():
    """All C files of the library."""
    loops = (f"kernels/{c.name}" for c in sorted((PACKAGE / "kernels").glob("loops_*_gen.c")))
    names = {*library(PACKAGE / "kernels"), *(f"kernels/{stem}.c" for stem in MORE), *loops}
    return [PACKAGE / name for name in sorted(names)]


def compiled(source):
    """The object of a C file, compiled again if it or a header changed."""
    target = FOLDER / f"{source.stem}.o"
    newest = max(path.stat().st_mtime for path in (source, ROOT / "setup.py", *included(str(source))))
    if not target.exists() or target.stat().st_mtime < newest:
        flags = [*CFLAGS, "-O3", "-fPIC", f"-I{PACKAGE / 'kernels'}"]
        subprocess.run([*COMPILER, *flags, "-c", str(source), "-o", str(target)], check=True)
    return target


def build():
    """Compile what is stale, link the library and the program; returns the program's path."""
    generate()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(JOBS) as pool:
        objects = list(pool.map(compiled, sources()))
    shared, program = FOLDER / "libtgx.so", FOLDER / "table"
    tail = ["-lm", "-lpthread"]
    subprocess.run([*COMPILER, "-shared", *map(str, objects), "-o", str(shared), *tail], check=True)
    main = ROOT / "tests" / "c" / "table.c"
    flags = [*CFLAGS, f"-I{PACKAGE / 'kernels'}"]
    subprocess.run([*COMPILER, *flags, str(main), *map(str, objects), "-o", str(program), *tail], check=True)
    return program


if __name__ == "__main__":
    print(build())
