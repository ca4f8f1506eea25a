"""Builds with ASan and UBSan in a copy of the source and runs tests there, or any other Python.

    python tools/sanitize.py [--short]          --short is what CI runs
    python tools/sanitize.py --run ARG ...      `python ARG ...` on that build

The build hides nothing from the sanitizers: each block of memory is as long as its tensor and goes back to the system
when that goes, no freed object is kept for the next, and the kernels of all instruction sets are instrumented; the
processor's best ones run.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "sanitize"
# one sample of every op in odd layouts; loading, autograd, the core and what users' memory comes in by
LOADING = [f"tests/archive/test_{name}.py" for name in ("hostile", "save_load", "arrays", "pytorch")]
PLANS = [f"tests/graph/test_{part}.py" for part in ("plan", "plan_state", "plan_flow", "plan_every_op", "emission")]
SAMPLES = [f"tests/extension/test_{part}.py" for part in ("derivatives", "values", "cplusplus")]
# on all processors, a file's tests in one process, as make test does
SPREAD = ["-x", "--numprocesses", "auto", "--dist", "loadfile"]
SHORT = ["-m", "not slow", "tests/sanitize", "tests/autograd", "tests/core", *PLANS, *LOADING, *SAMPLES]
LONG = [*SHORT, "tests/tensor", "tests/test_every_op.py", "tests/ops", "-k", "not equals_pytorch"]


def copy_source():
    """The sources as they are now; the objects of an earlier run stay, so that only what changed is compiled."""
    COPY.mkdir(parents=True, exist_ok=True)
    for item in ("tinygrad_ext", "tools", "tests", "plugins", "setup.py", "pyproject.toml", "README.md"):
        source, target = ROOT / item, COPY / item
        if source.is_dir():
            shutil.copytree(
                source,
                target,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("*.so", "*_gen.*", "__pycache__", "build"),
            )
            remove_gone(source, target)
        else:
            shutil.copy2(source, target)


def remove_gone(source, target):
    """Delete copies of files that are in the source no more; what the build makes there stays."""
    for copy in target.rglob("*"):
        made = copy.suffix in (".so", ".pyc") or "_gen." in copy.name
        if copy.is_file() and not made and not (source / copy.relative_to(target)).exists():
            copy.unlink()


def library(name):
    """Full path of a compiler run-time library."""
    return subprocess.run(
        ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def environment():
    env = dict(os.environ)
    env.update(
        {
            "TINYGRAD_EXT_SANITIZE": "1",
            "PYTHONPATH": str(COPY),
            "PYTHONMALLOC": "malloc",
            "LD_PRELOAD": library("libasan.so") + ":" + library("libstdc++.so.6"),
            # Python ends a daemon's thread in the midst of its frames, whose marks ASan's own clean-up then runs into
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99:use_sigaltstack=0:"
            "allocator_may_return_null=1:max_allocation_size_mb=1024",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=98",
        }
    )
    return env


def compilers():
    """For what tests compile: extensions are instrumented, too."""
    flags = "-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"
    return {"CC": f"gcc {flags}", "CXX": f"g++ {flags}"}


def python():
    """The interpreter of the test environment where there is one."""
    own = ROOT / ".venv" / "bin" / "python"
    return str(own if own.exists() else sys.executable)


def parse(argv):
    """The options of a command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="what CI runs")
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="ARG", help="arguments for Python, instead of tests")
    return parser.parse_args(argv)


def build():
    """Compiles what changed."""
    copy_source()
    env = {k: v for k, v in environment().items() if k != "LD_PRELOAD"}
    subprocess.run([python(), "setup.py", "--quiet", "build_ext", "--inplace"], cwd=COPY, env=env, check=True)


def main(argv=None):
    """Build, run, and return the exit code."""
    options = parse(argv)
    build()
    command = [python(), *(options.run or ["-m", "pytest", *SPREAD, *(SHORT if options.short else LONG)])]
    return subprocess.run(command, cwd=COPY, env={**environment(), **compilers()}).returncode


if __name__ == "__main__":
    sys.exit(main())
