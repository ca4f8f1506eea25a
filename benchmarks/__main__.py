"""`python -m benchmarks [--json FILE] [--filter TEXT] [--threads N] [--quick] [--ops]`."""

import argparse
import os
import sys
import time

# Read by OpenBLAS when NumPy loads it: presets of these would choose slower kernels than the machine has.
UNWANTED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def arguments():
    """The parsed command line."""
    p = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Times against PyTorch and NumPy, and budgets."
    )
    p.add_argument("--json", metavar="FILE", help="also write all figures to FILE")
    p.add_argument("--filter", metavar="TEXT", default="", help="only cases whose group or name contains TEXT")
    p.add_argument("--threads", type=int, default=1, help="threads of every library (default 1)")
    p.add_argument("--quick", action="store_true", help="a tenth of the time, rougher figures")
    p.add_argument("--ops", action="store_true", help="a row for each op of the table instead of the budgets")
    return p.parse_args()


def fit_environment(threads):
    """Start again, if need be, in an environment in which every library has the threads and kernels it should."""
    wanted = {name: str(threads) for name in THREADS}
    if threads == 1:
        wanted["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"  # JAX
    if any(name in os.environ for name in UNWANTED) or any(os.environ.get(k) != v for k, v in wanted.items()):
        env = {k: v for k, v in os.environ.items() if k not in UNWANTED} | wanted
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], env)


def main():
    """Run, print, write."""
    options = arguments()
    fit_environment(options.threads)
    from benchmarks import (  # noqa: F401
        complex_cases,
        extension_cases,
        fft_cases,
        graph_cases,
        libraries,
        machine,
        per_op,
        process,
        profiler_cases,
        program_cases,
        report,
        runner,
        transform_cases,
    )
    from benchmarks.cases import CASES

    chosen = [c for c in (per_op.cases() if options.ops else CASES) if options.filter in f"{c.group} {c.name}"]
    found = libraries.load(options.threads, {name for c in chosen for name in (*c.also, c.beside)})
    info = machine.describe(found, options.threads)
    # a round is shorter than the scheduler's slice, so that most rounds of a busy machine are undisturbed
    rounds, seconds = (15, 0.02) if options.quick else (75, 0.15)
    rows = runner.run(chosen, found, time.time_ns() & 0xFFFFFFFF, rounds, seconds, _progress(len(chosen)))
    rows = [r for r in rows if r.group != per_op.GROWN or not r.missing]
    for name, probe in () if options.ops else process.PROBES.items():
        if options.filter in f"process {name}":
            with machine.Watch() as watch:
                row = probe([lib.name for lib in found], 2 if options.quick else 7)
            row.foreign = watch.foreign
            rows.append(row)
    report.show(rows, info, machine.TOO_MUCH)
    if options.json:
        report.write_json(options.json, rows, info)


def _progress(total):
    done = []

    def step(row):
        done.append(row)
        if sys.stderr.isatty():
            print(
                f"\r{len(done)}/{total} {row.name:<40}",
                end="\n" if len(done) == total else "",
                file=sys.stderr,
                flush=True,
            )

    return step


if __name__ == "__main__":
    main()
