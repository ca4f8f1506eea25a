"""Builds with ASan and UBSan in a copy of the source and runs the core tests and one sample of every op.

    python tools/sanitize.py [--short]

--short leaves out the sweep's larger dtypes; it is what CI runs.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "sanitize"
SKIP = {"build", ".venv", ".git", "dist", "demo_output"}


def copy_source():
    """Fresh sources; the objects of an earlier run stay, so that only what changed is compiled."""
    COPY.mkdir(parents=True, exist_ok=True)
    for item in ("tinygrad_ext", "tools", "tests", "setup.py", "pyproject.toml", "README.md"):
        source, target = ROOT / item, COPY / item
        if source.is_dir():
            shutil.copytree(
                source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.so", "*_gen.*", "__pycache__")
            )
        else:
            shutil.copy2(source, target)


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
            "TINYGRAD_EXT_ISA": "base",
            "PYTHONPATH": str(COPY),
            "PYTHONMALLOC": "malloc",
            "LD_PRELOAD": library("libasan.so") + ":" + library("libstdc++.so.6"),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=98",
        }
    )
    return env


def python():
    """The interpreter of the test environment where there is one."""
    own = ROOT / ".venv" / "bin" / "python"
    return str(own if own.exists() else sys.executable)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="what CI runs")
    short = parser.parse_args().short
    copy_source()
    env = environment()
    build = {k: v for k, v in env.items() if k != "LD_PRELOAD"}
    subprocess.run([python(), "setup.py", "--quiet", "build_ext", "--inplace"], cwd=COPY, env=build, check=True)
    command = [python(), "-m", "pytest", "-x", "-m", "not slow", "tests/sanitize", "tests/autograd", "tests/core"]
    if not short:
        command += ["tests/test_every_op.py", "tests/ops", "-k", "not equals_pytorch"]
    sys.exit(subprocess.run(command, cwd=COPY, env=env).returncode)


if __name__ == "__main__":
    main()
