"""The test suite as other machines run it: `python -m tools.conditions families|loaded`.

families: once under each family of OpenBLAS kernels that this processor runs; loaded: once with eight busy processes
beside it. Prints each run's own last line at the end.
"""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUSY = 8
# None is what OpenBLAS finds itself. It takes OPENBLAS_CORETYPE at its word: kernels that the processor lacks end the
# process, so each family is told with the processor's flags that it needs.
FAMILIES = {
    None: set(),
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Zen": {"avx2", "fma"},
    "Sandybridge": {"avx"},
}


def runs_here(family):
    """Whether this processor has what the kernels of a family need; only Linux tells."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return FAMILIES[family] <= set(next((line for line in lines if line.startswith("flags")), "").split())


def environment(family):
    """The environment of this process, with the kernels of a family."""
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    return env | ({"OPENBLAS_CORETYPE": family} if family else {})


def suite(title, env=None):
    """Run all tests; what to say of it in the end, and whether it passed."""
    said, passed = [], True
    for folder in (["plugins"], []):
        print(f"== {title}: {' '.join(['pytest', *folder])}", flush=True)
        command = [sys.executable, "-m", "pytest", *folder]
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
            last = ""
            for line in process.stdout:
                print(line, end="", flush=True)
                last = line.strip() or last
        said.append(last)
        passed = passed and process.returncode == 0
    return f"{title}: {'; '.join(said)}", passed


@contextmanager
def busy_processes(count):
    """So many processes that do nothing but count."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main(what):
    if what == "families":
        results = [suite(f"kernels {f or 'chosen by OpenBLAS'}", environment(f)) for f in FAMILIES if runs_here(f)]
    else:
        with busy_processes(BUSY):
            results = [suite(f"with {BUSY} busy processes")]
    print(*(text for text, _ in results), sep="\n")
    if not all(passed for _, passed in results):
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
