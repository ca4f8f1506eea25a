"""Runs blocks of cases in a process of its own; the driver tells which, and looks on.

    python -m tools.fuzz.worker TARGET SEED PROGRESS

reads lines "first stop" and answers each with lines of JSON: one for every fault, then one with the counts. PROGRESS
is a file of 8 bytes that always holds the number of the case under way, so that the driver knows it after a crash.
"""

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
import traceback
import warnings

from .case import Fault, generator, module_of

MEMORY = 3 << 30


def main():
    target, seed, progress = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a case prints is no answer
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    module = module_of(target)
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # its shadow is larger than any limit
        faulthandler.enable()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    with open(progress, "r+b") as f, mmap.mmap(f.fileno(), 8) as counter:
        for line in sys.stdin:
            first, stop = map(int, line.split())
            calls = 0
            for number in range(first, stop):
                counter[:8] = struct.pack("q", number)
                done, fault = attempt(module, target, seed, number)
                calls += done
                if fault is not None:
                    print(json.dumps(fault), file=answers)
            print(json.dumps({"done": [first, stop], "calls": calls}), file=answers)


def attempt(module, target, seed, number):
    """(calls made, None or the description of a fault) of one case."""
    reset = getattr(module, "reset", None)
    try:
        return module.case(generator(target, seed, number)).run() or 1, None
    except Fault as fault:
        cause = fault.__cause__ or fault
        what = str(fault)
    except Exception as error:
        cause, what = error, f"the case itself failed: {type(error).__name__}: {error}"
    finally:
        if reset:
            reset()
    trace = "".join(traceback.format_exception(cause, limit=-12))
    return 1, {"number": number, "what": what, "trace": trace[-6000:], "text": text(module, target, seed, number)}


def text(module, target, seed, number):
    """The case as Python, made anew: running it may have changed its operands."""
    try:
        return module.case(generator(target, seed, number)).text()[:50_000]
    except Exception as error:
        return f"# cannot be written: {error!r}\n"


if __name__ == "__main__":
    main()
