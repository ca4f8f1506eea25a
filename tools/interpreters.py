"""Builds and tests on every other Python 3.10 to 3.14 of the machine: the core tests and the sweep of one dtype."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from requirements import requirements

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = [f"3.{minor}" for minor in range(10, 15)]
TESTS = ["tests/core", "tests/autograd", "tests/tensor/test_tensor.py", "tests/ops/test_view.py"]


def version(path):
    """'3.11' of an interpreter, or None when it does not run."""
    try:
        code = (
            "import sys, sysconfig, os; print('%d.%d' % sys.version_info[:2], "
            "os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
        )
        got = subprocess.run([path, "-c", code], capture_output=True, text=True, timeout=30)
    except OSError:
        return None
    found = got.stdout.split()
    return found[0] if got.returncode == 0 and found and found[1] == "True" else None


def interpreters():
    """One path for each version on the PATH or in a pyenv folder."""
    found = {}
    folders = os.environ.get("PATH", "").split(os.pathsep)
    folders += [str(p) for p in Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin")]
    for folder in folders:
        for v in VERSIONS:
            path = shutil.which(f"python{v}", path=folder)
            if path and v not in found and version(path) == v:
                found[v] = path
    return found


def run(v, path):
    """Install into an environment of its own and run the tests there; the exit code."""
    env = ROOT / "build" / f"env-{v}"
    python = env / "bin" / "python"
    if not python.exists():
        subprocess.run([path, "-m", "venv", str(env)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements("core-test")], check=True)
    subprocess.run([*pip, "--upgrade", "--force-reinstall", str(ROOT)], check=True)
    tests = [str(ROOT / t) for t in TESTS if (ROOT / t).exists()]
    # from another folder, so that the installed package is tested and not the source tree
    command = [
        str(python),
        "-m",
        "pytest",
        "--numprocesses",
        "auto",
        "-m",
        "not slow",
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(ROOT),
    ]
    return subprocess.run([*command, *tests], cwd=ROOT / "build").returncode


def main():
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    failed = []
    for v, path in interpreters().items():
        if v == own:
            continue
        print(f"== Python {v} ({path})", flush=True)
        if run(v, path):
            failed.append(v)
    if failed:
        sys.exit(f"failed on Python {', '.join(failed)}")


if __name__ == "__main__":
    main()
