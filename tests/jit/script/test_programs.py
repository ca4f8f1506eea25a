"""Every program of the table gives the same eager, scripted, and from its graph's text; PyTorch agrees where it is."""

import copy
import importlib.util
import io
import warnings

import pytest

import tinygrad_ext as tg
from tests.helpers import script_programs as table
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph, passes
from tinygrad_ext.graph.archive import load, save
from tinygrad_ext.graph.interpret import run
from tinygrad_ext.graph.program import Program

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


def from_code(scripted):
    """The function that the graph's Python text defines, with the defaults of the source."""
    space = {}
    exec(scripted.code, space)
    entry = scripted._entry
    return lambda *args: space[scripted.graph.name](*entry._bound(args, {}))


@pytest.mark.parametrize("stem, name", ALL, ids=IDS)
def test_the_code_of_the_graph_runs(stem, name):
    case = loaded(stem, tg)[name]
    call = from_code(jit.script(case.function))
    for row in case.rows:
        same(table.outcome(case.function, row), table.outcome(call, row))


@pytest.mark.parametrize("stem, name", ALL, ids=IDS)
def test_passes_and_plans_change_nothing(stem, name):
    case = loaded(stem, tg)[name]
    scripted = jit.script(case.function)
    if scripted.graph.effects:
        with pytest.raises(ValueError, match="effects"):
            passes.optimize(scripted.graph.copy())
        return
    graph = passes.optimize(scripted.graph.copy())

    def call(*args):
        return graph.executor(*scripted._entry._bound(args, {}))[0]

    for row in case.rows * 2:  # the second time by the plan of the first
        same(table.outcome(case.function, row), table.outcome(call, row))


@pytest.mark.parametrize("stem, name", ALL, ids=IDS)
def test_an_archive_of_the_graph_runs(stem, name):
    case = loaded(stem, tg)[name]
    scripted = jit.script(case.function)
    file = io.BytesIO()
    save(Program({"forward": scripted.graph}), file)
    file.seek(0)
    program = load(file)

    def call(*args):
        return program(*scripted._entry._bound(args, {}))

    for row in case.rows:
        same(table.outcome(case.function, row), table.outcome(call, row))


def gradients(function, row):
    """What the sum of all float results gives to the float tensors among the arguments, or the exception."""
    row = copy.deepcopy(row)
    leaves = [a.requires_grad_() for a in row if isinstance(a, tg.Tensor) and a.is_floating_point() and a.is_leaf]
    found = tensors_in(function(*row))
    if not found:
        return []
    total = sum(t.sum() for t in found)
    return [None if g is None else g.tolist() for g in tg.autograd.grad(total, leaves, allow_unused=True)]


def tensors_in(value):
    if isinstance(value, tg.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_in(v)] if isinstance(value, (list, tuple)) else []


def is_derivable(case):
    """Whether eager mode derives some result by an argument; it does not where a leaf is written to, for example."""
    found = False
    for row in case.rows:
        try:
            found = found or any(g is not None for g in gradients(case.function, row))
        except Exception:
            return False
    return found


DERIVABLE = [p for p in ALL if is_derivable(loaded(p[0], tg)[p[1]])]


@pytest.mark.parametrize("stem, name", DERIVABLE, ids=[f"{s}-{n}" for s, n in DERIVABLE])
def test_gradients_are_eagers(stem, name):
    case = loaded(stem, tg)[name]
    scripted = jit.script(case.function)
    for row in case.rows:
        assert repr(gradients(scripted, row)) == repr(gradients(case.function, row))


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
