"""Graphs run with machine code and without: what is compared, and values that show how an instruction rounds."""

import math
from contextlib import contextmanager

import tinygrad_ext as tg
from tests.helpers.graphs import bits
from tinygrad_ext.graph import Graph, emission

WERE = emission.emitting()
emission.emitting(True)
BEST = emission.emitting()
emission.emitting(WERE or False)
LEVELS = [level for level in ("avx2", "avx512") if level <= BEST]

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    0.5,
    -2.5,
    3.0,
    6.5,
    -3.0,
    1e-45,
    -1e-40,
    1e-310,
    3e38,
    2.0,
]


@contextmanager
def made_with(level, fewest=2):
    """Plans that are made in it have machine code of a level, or none; fewest: steps of a piece of it."""
    before, steps = emission.emitting(), emission.FEWEST
    emission.emitting(level)
    emission.FEWEST = fewest
    try:
        yield
    finally:
        emission.emitting(before or False)
        emission.FEWEST = steps


def run(graph, inputs, level, fewest=2):
    """(results, runs of the plan) of a graph whose plan is made for this call; what it did before is not used."""
    with made_with(level, fewest):
        fresh = Graph.parse(str(graph)).check()
        results, _ = fresh.execute(inputs)
        again, _ = fresh.execute(inputs)
        rows = [row for row in fresh.plan(*inputs).lines() if row.kind == "TILE"]
    assert list(map(comparable, again)) == list(map(comparable, results))
    return results, [[row.ops[i:k] for i, k in row.runs] for row in rows]


def comparable(t):
    """dtype, sizes, strides and bits. Any NaN is one: which of two is passed on depends on the layout in eager mode."""
    if t.dtype.is_floating_point:
        t = t.where(t == t, tg.tensor(math.nan, dtype=t.dtype))
    return t.dtype, t.shape, t.stride(), bits(t)


def check(graph, inputs, fewest=2, levels=LEVELS):
    """Machine code of each level gives the bits of the loops; returns the runs that were emitted."""
    expected, _ = run(graph, inputs, False)
    runs = []
    for level in levels:
        found, runs = run(graph, inputs, level, fewest)
        for a, b in zip(found, expected):
            assert comparable(a) == comparable(b), f"{level}: {graph}\n{inputs}\n{a}\n{b}"
    return runs
