"""Build of the compiled parts. Everything that can be switched stands in the block below.

Environment: TINYGRAD_EXT_DEBUG=1 (assertions, -O0), TINYGRAD_EXT_SANITIZE=1 (ASan and UBSan),
TINYGRAD_EXT_ANNOTATE=1 (Cython's HTML), TINYGRAD_EXT_COVERAGE=1 (line tracing), TINYGRAD_EXT_JOBS=n.
"""

import functools
import hashlib
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
PACKAGE = ROOT / "tinygrad_ext"
sys.path.insert(0, str(ROOT / "tools"))

from generate_kernels import declared, kernel_files  # noqa: E402
from progress import CythonProgress, Progress, processors  # noqa: E402  of tools/

# ---- switches ------------------------------------------------------------------------------------------------------
DEBUG = os.environ.get("TINYGRAD_EXT_DEBUG") == "1"
SANITIZE = os.environ.get("TINYGRAD_EXT_SANITIZE") == "1"
COVERAGE = os.environ.get("TINYGRAD_EXT_COVERAGE") == "1"
ANNOTATE = os.environ.get("TINYGRAD_EXT_ANNOTATE") == "1"
JOBS = int(os.environ.get("TINYGRAD_EXT_JOBS") or processors())

# No -ffast-math and no -march=native: results are the same on every machine of one instruction set, and a wheel
# runs everywhere. No contraction: vector body and scalar tail of a loop must round alike.
CFLAGS = [
    "-std=gnu11",
    "-fno-strict-aliasing",
    "-fopenmp-simd",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-Wno-unused-function",
    "-Wno-unused-variable",
    "-Wno-sign-compare",
    "-Werror=incompatible-pointer-types",  # newer compilers refuse these; say so with every compiler
    "-Werror=int-conversion",
    "-Werror=implicit-function-declaration",
]
CFLAGS += ["-O0", "-g"] if DEBUG else ["-O2", "-g0"]
# Constants beside the code instead of on pages of their own: of 67 modules an import maps 134 pieces instead of 268.
LDFLAGS = [] if DEBUG or sys.platform != "linux" else ["-Wl,--strip-debug", "-Wl,-O1", "-Wl,-z,noseparate-code"]
STRIPPED = [] if DEBUG or SANITIZE or sys.platform != "linux" else ["-Wl,--strip-all"]  # of what is installed
if SANITIZE:
    CFLAGS += [
        "-O1",
        "-g1",  # lines for reports and no variables, with which compiling takes half as long again
        "-fsanitize=address,undefined",
        "-fno-omit-frame-pointer",
        "-fno-sanitize=float-divide-by-zero,float-cast-overflow,alignment",
        "-DTGX_EXACT=1",  # blocks of exactly the bytes asked for, never cached: see core/data/storage.pyx
        "-DCYTHON_USE_FREELISTS=0",  # a tensor, node or storage that is used after it went must be seen
    ]
    LDFLAGS = ["-fsanitize=address,undefined"]
# The kernels know nothing of Python: no header of it is in reach, and no interpreter's flags, so all share the objects.
KERNELS = PACKAGE / "kernels"
COMPILER = [word for word in (os.environ.get("CC") or sysconfig.get_config_var("CC")).split() if word != "-pthread"]
KERNEL_FLAGS = [*CFLAGS, "-Wall", "-fwrapv", "-fPIC", *([] if DEBUG or SANITIZE else ["-O3"]), "-Itinygrad_ext/kernels"]
# Pointwise loops have a body for each layout that is worth one: what compilers add for strides of one would never run.
POINTWISE_FLAGS = ["-fno-version-loops-for-strides"]
# Kernels throw nothing and call nobody who does: no tables of how to leave them, but for what runs
# functions of plugins.
LEAF_FLAGS = [] if DEBUG or SANITIZE else ["-fno-asynchronous-unwind-tables"]
CALLS_PLUGINS = {"alone", "parallel", "plan", "program"}
# What every x86 processor can run is half as much code so, for those without AVX2.
BASE_FLAGS = [] if DEBUG or SANITIZE or platform.machine() not in ("x86_64", "AMD64") else ["-O2"]
_WORDS = " ".join(COMPILER[COMPILER[0] == "ccache" :] + KERNEL_FLAGS + POINTWISE_FLAGS + LEAF_FLAGS + BASE_FLAGS)
OBJECTS = ROOT / "build" / "kernels" / hashlib.sha256(_WORDS.encode()).hexdigest()[:12]
HEADER_FOLDERS = [
    "tinygrad_ext/kernels",
    "tinygrad_ext/core/data",
    "tinygrad_ext/core/loops",
    "tinygrad_ext/core/call",
    "tinygrad_ext/core/grad",
    "tinygrad_ext/extension",
]
# Included first by every file that Cython writes: exceptions leave them without the library's frames.
TRACEBACKS = "tracebacks.h"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": True,  # of lists and tuples, which are often users'; pointers have no bounds, and no view is indexed
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "embedsignature": False,
    "linetrace": COVERAGE,
    "binding": True,
    "annotation_typing": False,
}
# What Cython writes has a folder for each kind of build: of what it was told it keeps no record.
_TOLD = repr((DIRECTIVES, DEBUG or SANITIZE))
GENERATED = f"build/cython/{hashlib.sha256(_TOLD.encode()).hexdigest()[:12]}"

# the copies and the conversions between all dtypes, which are large: one module has them and tells the others where
LEVELS = ("base", "avx2", "avx512")
CASTS = ["kernels/cast_tables.c", *(f"kernels/{stem}_{s}_gen.c" for stem in ("cast_tables", "planes") for s in LEVELS)]
# C files linked into a module. By rule core/<room>/X.pyx links kernels/X.c, unless that declares kernels, and the three
# builds of kernels/X_isa.h; core/call/kernel_call links every kernel. What goes beyond the rule stands here.
MORE_SOURCES = {
    "core/data/coded": ["kernels/coded.c"],
    "core/data/random": ["kernels/random_state.c"],
    "core/data/geometry": ["kernels/extent.c", "kernels/tgx.c"],
    "core/loops/blas": ["kernels/blas_library.c", "kernels/gemm.c"],
    "core/loops/copy": [
        "kernels/casts.c",
        "kernels/coded.c",
        "kernels/flips.c",
        *CASTS,
    ],
    "core/loops/iterate": ["kernels/casts.c"],
    "core/loops/parallel": ["kernels/parallel_blas.c", "kernels/parallel_cores.c"],
    "core/loops/loop_tables": ["kernels/wide.c", "kernels/casts.c"],
    "core/call/places": ["core/call/frames.c"],
    "core/call/boundary": ["core/call/tracebacks.c"],
    "graph/emission": [f"kernels/emit{part}.c" for part in ("", "_formula", "_memory", "_vector", "_x86")],
    "graph/routine": ["kernels/plan.c", "kernels/program.c", *(f"kernels/spread_{level}_gen.c" for level in LEVELS)],
}
# What runs once for a plan, a plugin or an import, or beside calls of Python, is compiled for size: a third of it goes.
ONCE = {
    "core/data/devices",
    "core/data/random",
    "core/data/shared",
    "core/grad/custom",
    "core/loops/loop_tables",
    "extension/definitions",
    "extension/kernels",
    "extension/table",
    "graph/check",
    "graph/emission",
    "graph/lowering",
    "graph/schedule",
    "graph/walks",
}
LIBRARIES = {"core/loops/blas": ["dl"], "core/loops/parallel": ["pthread"]}


def kernel_sources(place):
    """C files of the module at `place` (such as core/loops/iterate), below the package."""
    stem = place.rpartition("/")[2]
    elsewhere = any(f"kernels/{stem}.c" in files for module, files in MORE_SOURCES.items() if module != place)
    if (KERNELS / f"{stem}.c").exists() and not elsewhere and not declared(KERNELS / f"{stem}.c"):
        yield f"kernels/{stem}.c"
    if (KERNELS / f"{stem}_isa.h").exists():
        yield from (f"kernels/{stem}_{level}_gen.c" for level in LEVELS)
    if place == "core/call/kernel_call":
        yield from library(KERNELS)
    if place == "core/loops/loop_tables":
        yield from (f"kernels/{c.name}" for c in sorted(KERNELS.glob("loops_*_gen.c")))
    yield from MORE_SOURCES.get(place, [])


def library(folder):
    """All C files of the kernels: those that declare some, the walk, and what belongs to their headers."""
    yield "kernels/kernel_table_gen.c"
    waiting, stems = ["walk", "halves", *(c.stem for c in kernel_files(folder))], set()
    while waiting:
        stem = waiting.pop()
        if stem in stems:
            continue
        stems.add(stem)
        if (folder / f"{stem}.c").exists():
            waiting += [h.stem for h in included(str(folder / f"{stem}.c")) if h.parent == folder]
    for stem in sorted(stems):
        if (folder / f"{stem}.c").exists():
            yield f"kernels/{stem}.c"
        if (folder / f"{stem}_isa.h").exists():
            yield from (f"kernels/{stem}_{level}_gen.c" for level in LEVELS)


def optimisation(place, kernels):
    """What a compiler is to do for the C of a .pyx beyond what CFLAGS say; `kernels` have flags of their own."""
    if DEBUG or SANITIZE:
        return []
    return ["-Os"] if place in ONCE else ["-O3"] if kernels else []


def extensions():
    for pyx in sorted(PACKAGE.rglob("*.pyx")):
        place = pyx.relative_to(PACKAGE).with_suffix("").as_posix()
        kernels = [f"tinygrad_ext/{c}" for c in kernel_sources(place)]
        # every module looks at its objects again when a header changed; IncrementalBuild knows which include it
        places = ("kernels/*.h", "core/*/*.h", "extension/*.h", "include/*.h")
        headers = [str(h.relative_to(ROOT)) for place in places for h in PACKAGE.glob(place)]
        yield Extension(
            "tinygrad_ext." + place.replace("/", "."),
            [str(pyx.relative_to(ROOT)), *kernels],
            depends=headers,
            include_dirs=HEADER_FOLDERS,
            extra_compile_args=[*CFLAGS, *optimisation(place, kernels)],
            extra_link_args=LDFLAGS,
            libraries=["m", *LIBRARIES.get(place, [])],
            define_macros=[("CYTHON_TRACE", "1")] if COVERAGE else [],
        )


class IncrementalBuild(build_ext):
    """Compiles only the C files that changed, all of them side by side, then links.

    setuptools compiles the files of a module one after the other, and the largest modules have dozens. So it is asked
    twice: once for a list of what it would compile, and once more, when the objects are there, to link.
    """

    def finalize_options(self):
        """What is linked for the tree keeps its names, and lies apart from what is linked for a wheel."""
        super().finalize_options()
        if self.inplace:
            self.build_lib = os.path.join("build", "in_place")

    def run(self):
        for extension in self.extensions if not self.inplace else ():
            extension.extra_link_args = [*extension.extra_link_args, *STRIPPED]
        super().run()

    def build_extensions(self):
        self.remove_gone()
        compiler, jobs = self.compiler, {}
        compile_one, link = compiler._compile, compiler.link_shared_object
        compiler._compile = lambda obj, *rest: jobs.setdefault(obj, rest)
        compiler.link_shared_object = lambda *args, **kwargs: None
        super().build_extensions()
        stale = [(obj, *rest) for obj, rest in jobs.items() if is_stale(obj, rest[0])]
        compile_all(compile_one, stale)
        compiler._compile, compiler.link_shared_object = lambda *args: None, link
        self.parallel = JOBS
        super().build_extensions()

    def remove_gone(self):
        """Delete modules whose source is gone: Python would still find them."""
        made = {self.get_ext_filename(extension.name) for extension in self.extensions}
        for folder in (Path(self.build_lib).resolve(), ROOT):
            for module in (folder / PACKAGE.name).rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
                if module.relative_to(folder).as_posix() not in made:
                    module.unlink()


def is_stale(obj, src):
    by_hand = [ROOT / "setup.py", src, *included(src)]
    if Path(src).is_relative_to(GENERATED):
        by_hand.append(PACKAGE / "core" / "call" / TRACEBACKS)
    newest = max(os.path.getmtime(f) for f in by_hand)
    return not os.path.exists(obj) or os.path.getmtime(obj) < newest


def kernel_object(source):
    """The object of a C file of kernels/, compiled again if it or a header changed."""
    OBJECTS.mkdir(parents=True, exist_ok=True)
    target = OBJECTS / f"{source.stem}.o"
    if is_stale(target, source):
        flags = [*KERNEL_FLAGS, *(() if source.stem in CALLS_PLUGINS else LEAF_FLAGS)]
        flags += filter(is_taken, POINTWISE_FLAGS) if source.name.startswith("loops_") else ()
        flags += BASE_FLAGS if source.stem.endswith("_base_gen") else ()
        command = [*COMPILER, *flags, "-c", str(source.relative_to(ROOT)), "-o", str(target)]
        subprocess.run(command, cwd=ROOT, check=True)
    return target


@functools.cache
def is_taken(flag):
    """Whether the compiler knows a flag; those of optimisations are not the same for all."""
    command = [*COMPILER, "-Werror", flag, "-fsyntax-only", "-x", "c", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def compile_all(compile_one, tasks):
    """Run the compiler for every task, the largest sources first, on JOBS processors."""
    progress = Progress(f"compiling C files, {JOBS} at a time", len(tasks))

    def one(task):
        obj, src, ext, cc_args, postargs, pp_opts = task
        if (ROOT / src).parent == KERNELS:
            Path(obj).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(kernel_object(ROOT / src), obj)
        else:
            first = ["-include", TRACEBACKS] if Path(src).is_relative_to(GENERATED) else []
            compile_one(obj, src, ext, cc_args, [*postargs, *first], pp_opts)
        progress.step(src)

    with ThreadPoolExecutor(JOBS) as pool:
        try:
            list(pool.map(one, sorted(tasks, key=lambda task: -os.path.getsize(task[1]))))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # one error is enough
            raise


@functools.cache
def includes(path):
    """The package's headers that a file includes itself."""
    names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', Path(path).read_text(errors="replace"), re.M)
    found = [folder / name for name in names for folder in map(ROOT.joinpath, HEADER_FOLDERS)]
    return [header for header in found if header.exists()]


@functools.cache
def included(src):
    """The package's headers that a C file includes, directly or through others."""
    found, waiting = set(), list(includes(src))
    while waiting:
        header = waiting.pop()
        if header not in found:
            found.add(header)
            waiting += includes(header)
    return found


def generate():
    """Write the C and Cython files that are made from tables and records."""
    from generate_kernels import write_table
    from generate_loops import generate as generate_loops
    from generate_table import generate as generate_table

    generate_table(PACKAGE)
    generate_loops(PACKAGE)
    write_table(KERNELS)


def main():
    from Cython.Build import cythonize

    if DEBUG or SANITIZE:
        import checked_casts  # of tools/

        checked_casts.install()
        multiprocessing.set_start_method("fork", force=True)  # so that the processes that write the C have it too
    generate()
    with redirect_stdout(CythonProgress(JOBS)):
        modules = cythonize(
            list(extensions()),
            compiler_directives=DIRECTIVES,
            annotate=ANNOTATE,
            nthreads=JOBS,
            build_dir=GENERATED,
        )
    setup(ext_modules=modules, cmdclass={"build_ext": IncrementalBuild})


if __name__ == "__main__":
    main()
