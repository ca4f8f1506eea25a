"""Every program of the table gives the same eager, scripted, and from its graph's text; PyTorch agrees where it is."""

import importlib.util
import warnings

import pytest

import tinygrad_ext as tg
from tests.helpers import script_programs as table
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph
from tinygrad_ext.graph.interpret import run

ALL = [(stem, name) for stem in table.FILES for name in table.names(stem)]
IDS = [f"{stem}-{name}" for stem, name in ALL]
_loaded = {}


def loaded(stem, package):
    key = stem, package.__name__
    if key not in _loaded:
        _loaded[key] = table.load(stem, package)
    return _loaded[key]


@pytest.fixture(scope="module")
def torch():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
    return torch


def from_text(scripted):
    """A function that runs the graph that a script's text reads back to."""
    entry = scripted._entry
    graph = Graph.parse(str(entry.graph)).check()

    def call(*args):
        return run(graph, entry._bound(args, {}))[0][0]

    return call


def same(one, other, exact=True):
    if one[0] != other[0]:
        raise AssertionError(f"{one} is not {other}")
    if one[0] == "raises":
        assert not exact or isinstance(other[1], type(one[1])), (one, other)
    else:
        assert (one[1] == other[1]) if exact else table.about(one[1]) == table.about(other[1])


@pytest.mark.parametrize("stem, name", ALL, ids=IDS)
def test_eager_script_and_parsed_text_agree(stem, name):
    case = loaded(stem, tg)[name]
    scripted = jit.script(case.function)
    parsed = from_text(scripted)
    for row in case.rows:
        eager = table.outcome(case.function, row)
        same(eager, table.outcome(scripted, row))
        same(eager, table.outcome(parsed, row))


@pytest.mark.parametrize("stem, name", ALL, ids=IDS)
def test_pytorch_agrees(stem, name, torch):
    mine, theirs = loaded(stem, tg)[name], loaded(stem, torch)[name]
    if mine.differs:
        pytest.skip(mine.differs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = torch.jit.script(theirs.function)
    scripted = jit.script(mine.function)
    for row, their_row in zip(mine.rows, theirs.rows):
        # PyTorch copies lists and dicts on their way in, so what became of the arguments is not compared
        same(table.outcome(reference, their_row, False), table.outcome(scripted, row, False), exact=False)
