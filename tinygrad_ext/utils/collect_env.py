"""What a report of a fault should tell of the machine: `python -m tinygrad_ext.utils.collect_env` prints it."""

import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from typing import NamedTuple

import tinygrad_ext
from tinygrad_ext.core.call.boundary import boundary

__all__ = [
    "SystemEnv",
    "get_cpu_info",
    "get_env_info",
    "get_gcc_version",
    "get_libc_version",
    "get_os",
    "get_pip_packages",
    "get_platform",
    "get_pretty_env_info",
    "main",
    "pretty_str",
    "run",
    "run_and_parse_first_match",
    "run_and_read_all",
    "run_and_return_first_line",
]


class SystemEnv(NamedTuple):
    """Facts of this process and machine, all of them texts but pip_packages, a list of "name==version"."""

    version: str
    python_version: str
    python_platform: str
    os: str
    libc_version: str
    gcc_version: str
    config: str
    cpu_info: str
    variables: str
    pip_packages: list


@boundary
def get_env_info():
    """The SystemEnv. Runs one command, the C compiler, where there is one."""
    bits = 64 if sys.maxsize > 2**32 else 32
    return SystemEnv(
        version=tinygrad_ext.__version__,
        python_version=f"{sys.version} ({bits}-bit runtime)",
        python_platform=platform.platform(),
        os=_system(),
        libc_version="-".join(platform.libc_ver()) or "unknown",
        gcc_version=_first_line([*os.environ.get("CC", "cc").split(), "--version"]),
        config=tinygrad_ext.show_config().rstrip(),
        cpu_info=_processor(),
        variables="\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(_OURS))
        or "none",
        pip_packages=_packages(),
    )


_OURS = ("TINYGRAD_EXT_", "OPENBLAS_", "OMP_", "MKL_")
_TELLING = ("numpy", "scipy", "pluggy", "safetensors", "cython", "torch", "onnx")


def _system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


@boundary
def run(command):
    """(exit code, output, errors) of a command, a list of words or a line for the shell; 127 where there is none.

    >>> from tinygrad_ext.utils import collect_env
    >>> collect_env.run(["echo", "hello"])
    (0, 'hello', '')
    """
    try:
        done = subprocess.run(command, capture_output=True, shell=isinstance(command, str), errors="replace")
    except FileNotFoundError:
        return 127, "", "Command not found"
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@boundary
def run_and_read_all(run_lambda, command):
    """What a command prints, None where it fails; run_lambda runs it as `run` does."""
    code, out, _ = run_lambda(command)
    return out if code == 0 else None


@boundary
def run_and_parse_first_match(run_lambda, command, regex):
    """The first group of a regular expression in what a command prints, None where there is none."""
    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return found and found.group(1)


@boundary
def run_and_return_first_line(run_lambda, command):
    """The first line that a command prints, None where it fails."""
    out = run_and_read_all(run_lambda, command)
    return out if out is None else out.split("\n")[0]


@boundary
def get_cpu_info(run_lambda):
    """The processor, as the report tells it."""
    return _processor()


@boundary
def get_os(run_lambda):
    """The system, as the report tells it."""
    return _system()


@boundary
def get_platform():
    """The word that Python has for the system, such as linux."""
    return sys.platform


@boundary
def get_libc_version():
    """The C library and its version."""
    return "-".join(platform.libc_ver()) or "unknown"


@boundary
def get_gcc_version(run_lambda):
    """The first line that the C compiler says of itself, None where there is none."""
    return run_and_return_first_line(run_lambda, [*os.environ.get("CC", "cc").split(), "--version"])


@boundary
def get_pip_packages(run_lambda, patterns=None):
    """("pip", lines "name==version") of what matters here, or of those that one of the patterns stands in."""
    found = _packages()
    return "pip", "\n".join(x for x in found if patterns is None or any(p in x for p in patterns))


def _first_line(command):
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "not found"
    return (found.stdout.splitlines() or ["not found"])[0]


def _processor():
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{os.cpu_count()} x {names[0] if names else platform.processor() or platform.machine()}"


def _packages():
    """What matters here, and what adds to it."""
    found = {}
    for dist in metadata.distributions():
        name = (dist.metadata["Name"] or "").lower()
        brings = any(point.group.startswith("tinygrad_ext.") for point in dist.entry_points)
        if brings or name.startswith("tinygrad") or name in _TELLING:
            found[name] = f"{name}=={dist.version}"
    return [found[name] for name in sorted(found)]


@boundary
def pretty_str(envinfo):
    """A SystemEnv as text."""
    rows = []
    for name, value in envinfo._asdict().items():
        text = "\n".join(value) if isinstance(value, list) else str(value)
        title = name.replace("_", " ")
        rows.append(
            f"{title}: {text}" if "\n" not in text else f"{title}:\n" + "\n".join("  " + x for x in text.split("\n"))
        )
    return "\n".join(rows)


@boundary
def get_pretty_env_info():
    """Text to put into a report.

    >>> from tinygrad_ext.utils import collect_env
    >>> collect_env.get_pretty_env_info().startswith("version: ")
    True
    """
    return pretty_str(get_env_info())


@boundary
def main():
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
