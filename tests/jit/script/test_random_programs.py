"""Random programs with branches, loops and early exits: eager = script = text read back, gradients too."""

import linecache

import pytest

import tinygrad_ext as tg
from tests.helpers.random_programs import near
from tests.helpers.random_scripts import Writer
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph
from tinygrad_ext.graph.interpret import run

GROUP, QUICK, ALL = 20, 60, 1000
INPUTS = [([0.5, -1.0, 2.0], 0, 1), ([0.5, 1.0], 4, -2), ([-3.0, 0.25], 7, 3)]


def function(seed):
    text = Writer(seed).source()
    filename = f"<random script {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space = {"torch": tg}
    exec(compile(text, filename, "exec"), space)
    return space["f"], text


def outcome(call, values, a, b):
    x = tg.tensor(values, requires_grad=True)
    try:
        number, tensor, other, last, log = call(x, a, b)
        (grad,) = tg.autograd.grad((tensor.sum() + last.sum()), x, allow_unused=True)
    except (RuntimeError, IndexError, OverflowError) as error:
        return "written to" if "modified by an inplace operation" in str(error) else type(error).__name__, None
    told = (number, tensor.tolist(), other, last.tolist(), log)
    return repr(told), None if grad is None else grad.tolist()  # nan is nan


def parsed(scripted):
    graph = Graph.parse(str(scripted.graph)).check()
    return lambda *args: run(graph, args)[0][0]


def check(seed):
    eager, text = function(seed)
    scripted = jit.script(eager)
    for row in INPUTS:
        expected, grad = outcome(eager, *row)
        if expected == "written to":  # a graph has nothing that could be
            continue
        found, got = outcome(scripted, *row)
        assert found == expected and near(got, grad), text  # a loop gives its part of a gradient as one number
        assert repr(outcome(parsed(scripted), *row)) == repr((expected, grad)), text


@pytest.mark.parametrize("start", range(0, QUICK, GROUP))
def test_random_programs_agree(start):
    for seed in range(start, start + GROUP):
        check(seed)


@pytest.mark.slow
def test_many_random_programs_agree():
    for seed in range(QUICK, ALL):
        check(seed)
