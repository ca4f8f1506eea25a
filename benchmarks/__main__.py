"""`python -m benchmarks [--json FILE] [--filter TEXT] [--threads N] [--quick] [--ops]`, `--wide` and `--compare`."""

import argparse
import json
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
    p.add_argument("--compare", nargs=2, metavar=("A", "B"), help="print what changed between two JSON files")
    p.add_argument("--threshold", type=float, default=0.15, help="... by more than this part (default 0.15)")
    w = p.add_argument_group("--wide")
    w.add_argument("--wide", action="store_true", help="ops by size, dtype and layout, convolutions, workloads")
    w.add_argument(
        "--only", metavar="PATTERN", default="", help="rows whose 'family name' matches a regular expression"
    )
    w.add_argument("--sizes", default="8,10k,1M", help="elements of the largest operand (default 8,10k,1M)")
    w.add_argument("--samples", type=int, default=1, help="samples of each record (default 1)")
    w.add_argument("--seconds", type=float, default=0.03, help="of a row; suspicious ones get more (default 0.03)")
    w.add_argument("--sample", type=int, metavar="N", default=0, help="N rows, chosen at random but always the same")
    w.add_argument("--shard", metavar="I/N", default="1/1", help="the I-th of N parts, for several processes")
    w.add_argument("--minutes", type=float, help="end after so long; the same command goes on where it ended")
    return p.parse_args()


def fit_environment(threads):
    """Start again, if need be, in an environment in which every library has the threads and kernels it should."""
    wanted = {name: str(threads) for name in THREADS}
    if threads == 1:
        wanted["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"  # JAX
    if any(name in os.environ for name in UNWANTED) or any(os.environ.get(k) != v for k, v in wanted.items()):
        env = {k: v for k, v in os.environ.items() if k not in UNWANTED} | wanted
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], env)


def compare(before, after, threshold):
    """Print what changed between two files."""
    from benchmarks.wide_report import compared

    data = []
    for path in (before, after):
        with open(path) as f:
            data.append(json.load(f))
    print(*compared(*data, threshold), sep="\n")


def wide(options):
    """Run the wide rows, print, write."""
    from benchmarks import libraries, machine, wide_report, wide_run
    from benchmarks.wide import SIZES, specs

    sizes = options.sizes.split(",")
    if unknown := [size for size in sizes if size not in SIZES]:
        sys.exit(f"--sizes: {unknown[0]!r} is none of {', '.join(SIZES)}")
    shard = tuple(map(int, options.shard.split("/")))
    rows = wide_run.chosen(specs(sizes, options.samples), options.only, options.sample, shard)
    info = machine.describe(libraries.load(options.threads), options.threads)
    part = f"{options.json}.part" if options.json else None
    child = wide_run.Child(options.threads, options.seconds)
    rows, whole = wide_run.run(rows, child, part, options.minutes, _tell)
    print(*wide_report.summary(rows, info), sep="\n")
    if not whole:
        print("not all rows were measured" + (f"; the same command goes on from {part}" if part else ""))
    if options.json:
        wide_report.write_json(options.json, rows, info, whole)
        if whole:
            os.remove(part)


def _tell(done, total, row):
    if sys.stderr.isatty():
        print(f"\r{done}/{total} {row['name']:<70.70}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def main():
    """Run, print, write."""
    options = arguments()
    if options.compare:
        compare(*options.compare, options.threshold)
        return
    fit_environment(options.threads)
    if options.wide:
        wide(options)
        return
    from benchmarks import (  # noqa: F401
        complex_cases,
        extension_cases,
        fft_cases,
        graph_cases,
        layer_cases,
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
                try:
                    row = probe([lib.name for lib in found], 2 if options.quick else 7)
                except ChildProcessError as error:  # the other rows are there
                    row = runner.Row(name, "process", None, missing=str(error))
            row.foreign = watch.foreign
            rows.append(row)
    if not rows:
        raise SystemExit(f"no row's group and name contain {options.filter!r}; --wide --only looks in the wide table")
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
