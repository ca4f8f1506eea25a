"""Random input of every kind for the engine: ops, files, schemas, lenders of memory, threads, autograd programs.

    python -m tools.fuzz --seconds 180                      the targets share the time
    python -m tools.fuzz --only ops --calls 100000 --seed 7
    python -m tools.fuzz --resume --seconds 3600            goes on where the seed's last run ended
    python -m tools.fuzz --replay build/fuzz/ops-7-123.py   one failing case again, in this process

Ends with 1 when there was a fault. Each failing case is in a file of its own below build/fuzz.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from .case import module_of
from .driver import Campaign, State, replay
from .findings import Findings
from .worker import text

SHARES = {
    "ops": 50,
    "archives": 20,
    "graph_archives": 10,
    "objects": 10,
    "schemas": 5,
    "lenders": 8,
    "callables": 8,
    "threads": 7,
    "programs": 10,
    "graph_programs": 10,
    "scripts": 5,
}  # of the time


def show(target, seed, number):
    """Print a case as text."""
    print(text(module_of(target), target, seed, number))


def parse(argv):
    """The options of a command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, help="time for all targets; 180 unless --calls is given")
    parser.add_argument("--calls", type=int, help="cases of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=SHARES, help="a target; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--resume", action="store_true", help="go on after the last case of this seed")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="for failing cases and the state")
    parser.add_argument("--replay", metavar="FILE", help="run the case of a file again")
    return parser.parse_args(argv)


def main(argv=None):
    options = parse(argv)
    if options.replay:
        return replay(options.replay)
    seconds = options.seconds if options.seconds or options.calls else 180
    state = State(options.folder / f"state-{options.seed}.json", options.resume)
    found = Findings(options.folder)
    targets = options.only or list(SHARES)
    for target in targets:
        share = seconds and seconds * SHARES[target] / sum(SHARES[t] for t in targets)
        print(f"{target}" + (f", {share:.0f} s" if share else ""), flush=True)
        campaign = Campaign(target, options.seed, state, found, jobs=options.jobs, block=module_of(target).BLOCK)
        campaign.run(time.monotonic() + share if share else None, options.calls)
    report(state, found, options.seed)
    return 1 if found.kinds else 0


def report(state, found, seed):
    """Print what was run and what was found."""
    print(f"\nseed {seed}\n{'target':10}{'cases':>10}{'calls':>10}{'faults':>8}{'seconds':>9}")
    for target, row in state.rows.items():
        print(f"{target:10}{row['cases']:>10}{row['calls']:>10}{row['faults']:>8}{row['seconds']:>9.0f}")
    print(*found.report(), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
