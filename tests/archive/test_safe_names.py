"""Classes and functions that a program names safe, in files that `load` reads without running anything else."""

import argparse
import collections
import functools
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals


class Point:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)


class Counted(Point):
    def __setstate__(self, state):
        self.x, self.seen = state["x"], True


class Table(dict):
    pass


class Wave(tg.Tensor):
    pass


def _called(x):
    return [x, x]


class Caller:
    def __reduce__(self):
        return _called, (3,)


@pytest.fixture(autouse=True)
def _clean():
    before = get_safe_globals()
    yield
    clear_safe_globals()
    add_safe_globals(before)


def _written(tmp_path, value):
    path = tmp_path / "f.pt"
    tg.save(value, path, format="object")
    return path


def test_objects_of_a_class_come_back_where_it_was_named(tmp_path):
    path = _written(tmp_path, {"args": argparse.Namespace(lr=0.1, w=tg.ones(2)), "p": [Point(tg.arange(3))]})
    with pytest.raises(pickle.UnpicklingError, match="names argparse.Namespace.*serialization.add_safe_globals"):
        tg.load(path)
    with safe_globals([argparse.Namespace, Point]):
        got = tg.load(path)
    assert got["args"].lr == 0.1 and got["args"].w.tolist() == [1, 1] and got["p"][0].x.tolist() == [0, 1, 2]
    with pytest.raises(pickle.UnpicklingError):
        tg.load(path)
    add_safe_globals([argparse.Namespace])
    with pytest.raises(pickle.UnpicklingError, match="Point"):
        tg.load(path)


def test_states_are_set_as_pickle_sets_them(tmp_path):
    slotted = Slotted()
    slotted.x = 4
    with safe_globals([Slotted, Counted, Table]):
        got = tg.load(_written(tmp_path, [slotted, Counted(5), Table(a=tg.ones(1))]))
    assert got[0].x == 4 and got[1].x == 5 and got[1].seen
    assert type(got[2]) is Table and got[2]["a"].item() == 1


def test_a_function_is_called_where_it_was_named(tmp_path):
    path = _written(tmp_path, Caller())
    with pytest.raises(pickle.UnpicklingError, match="_called"):
        tg.load(path)
    with safe_globals([_called]):
        assert tg.load(path) == [3, 3]


def test_a_name_of_its_own(tmp_path):
    path = _written(tmp_path, Point(2))
    with safe_globals([(Counted, f"{__name__}.Point")]):
        got = tg.load(path)
    assert type(got) is Counted and got.seen


def test_a_class_that_was_named_lets_no_other_in(tmp_path):
    path = _written(tmp_path, Point(functools.partial(_called, 1)))
    with safe_globals([Point]), pytest.raises(pickle.UnpicklingError, match="functools.partial"):
        tg.load(path)
    hidden = _written(tmp_path, collections.deque([1]))
    with safe_globals([Point]), pytest.raises(pickle.UnpicklingError, match="collections.deque"):
        tg.load(hidden)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_tensors_of_a_class_that_pytorch_saved(tmp_path, torch):
    theirs = type("Theirs", (torch.Tensor,), {"__module__": __name__})
    globals()["Theirs"] = theirs
    try:
        wave = torch.arange(3.0).as_subclass(theirs)
        wave.rate = 7
        torch.save({"w": wave}, tmp_path / "f.pt")
    finally:
        del globals()["Theirs"]
    with pytest.raises(pickle.UnpicklingError, match="Theirs"):
        tg.load(tmp_path / "f.pt")
    with safe_globals([(Wave, f"{__name__}.Theirs")]):
        got = tg.load(tmp_path / "f.pt")["w"]
    assert type(got) is Wave and got.tolist() == [0, 1, 2] and got.rate == 7


def test_modules_that_pytorch_saved(tmp_path, torch):
    theirs = torch.nn.Linear(2, 3)
    torch.save(theirs, tmp_path / "f.pt")
    with safe_globals([tg.nn.Linear]):
        got = tg.load(tmp_path / "f.pt")
    assert type(got) is tg.nn.Linear and got.weight.tolist() == theirs.weight.tolist()
    assert got(tg.ones(1, 2)).shape == (1, 3)


def test_a_name_is_kept_once():
    for _ in range(3):
        add_safe_globals([Point, (Table, "old.Table")])
    assert get_safe_globals() == [Point, (Table, "old.Table")]


def test_builtins_have_the_name_that_the_second_protocol_gives_them(tmp_path):
    path = _written(tmp_path, [slice(1, 2), functools.partial(print, 1), range(3)])
    with pytest.raises(pickle.UnpicklingError):
        tg.load(path)
    with safe_globals([slice, functools.partial, print, range]):
        found = tg.load(path)
    assert found[0] == slice(1, 2) and found[1].func is print and found[1].args == (1,) and found[2] == range(3)


def test_attributes_of_named_classes_cost_what_they_weigh(tmp_path):
    point = Point(1)
    vars(point).update({f"a{i}": i for i in range(5000)})
    path = _written(tmp_path, point)
    with safe_globals([Point]):
        assert tg.load(path).a4999 == 4999
        with pytest.raises(RuntimeError, match="max_objects"):
            tg.load(path, max_objects=12_000)
