"""Cases of the profiler: what an operation costs while it is recorded. Importing it adds them to the table.

A recording begins and ends in each run; 2,000 operations make that small. What an operation costs while nobody
records is the group of small ops.
"""

import importlib

from benchmarks.cases import case

RUNS = 2_000


def recorded(lib, call, **options):
    module = lib.module
    profiler = importlib.import_module(f"{module.__name__}.profiler")
    cpu = [profiler.ProfilerActivity.CPU]

    def run():
        with profiler.profile(activities=cpu, **options):
            for _ in range(RUNS):
                call()

    return run


@case("2,000 adds of 8, recorded", "profiler", 0.25)
def _adds(lib, draw):
    x = draw(lib, 8)
    return recorded(lib, lambda: x + x)


@case("the same with shapes and bytes", "profiler", 0.5)
def _adds_with_shapes(lib, draw):
    x = draw(lib, 8)
    return recorded(lib, lambda: x + x, record_shapes=True, profile_memory=True)


@case("2,000 ranges, recorded", "profiler", 0.25)
def _ranges(lib, draw):
    record_function = importlib.import_module(f"{lib.module.__name__}.profiler").record_function

    def call():
        with record_function("range"):
            pass

    return recorded(lib, call)
