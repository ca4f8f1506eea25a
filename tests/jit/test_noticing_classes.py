"""What a program reads of classes, of modules of Python and in methods is noticed where another one stands there."""

import sys
import types

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn

settings = types.ModuleType("tests_settings")
K, PLAIN = 2, types.SimpleNamespace(s=2)


class Settings:
    s, table = 2, {"a": 2}


class Mixed:
    """Stands behind Module in the order of the classes."""

    late = 2


class Base(nn.Module, Mixed):
    k, row = 2, [2]

    def h(self, x):
        return x * self.k

    @property
    def p(self):
        return self.k * 10

    @staticmethod
    def st(x):
        return x * 3


class Derived(Base):
    def forward(self, x):
        y = self.h(x) + self.row[0] + self.p + self.st(x) + type(self).k + self.late
        return y + K + Settings.s + Settings.table["a"] + settings.SCALE + settings.rows[0] + PLAIN.s


class Thing:
    k = 2

    def m(self, x):
        return x * self.k + K


THING, NET = Thing(), Derived()


def of_an_object(x):
    return THING.m(x) + Settings.s + settings.scaled(x)


CHANGES = {
    "inherited number": lambda m: m.setattr(Base, "k", 5),
    "one in front of it": lambda m: m.setattr(Derived, "k", 9, raising=False),
    "behind Module": lambda m: m.setattr(Mixed, "late", 9),
    "list of a class": lambda m: Base.row.__setitem__(0, 7),
    "method": lambda m: m.setattr(Base, "h", lambda self, x: x * 100),
    "property": lambda m: m.setattr(Base, "p", property(lambda self: 1000)),
    "static method": lambda m: m.setattr(Base, "st", staticmethod(lambda x: x * 50)),
    "forward": lambda m: m.setattr(Derived, "forward", lambda self, x: x * 11),
    "global": lambda m: m.setattr(sys.modules[__name__], "K", 5),
    "settings": lambda m: m.setattr(Settings, "s", 7),
    "dict of a class": lambda m: m.setitem(Settings.table, "a", 9),
    "module": lambda m: m.setattr(settings, "SCALE", 7),
    "list of a module": lambda m: m.setattr(settings, "rows", [5]),
    "namespace": lambda m: m.setattr(PLAIN, "s", 70),
    "class of an object": lambda m: m.setattr(Thing, "k", 7),
    "method of an object": lambda m: m.setattr(Thing, "m", lambda self, x: x * 40),
    "function of a module": lambda m: m.setattr(settings, "scaled", lambda x: x * 60),
}


@pytest.fixture(autouse=True)
def state(monkeypatch):
    settings.SCALE, settings.rows, settings.scaled = 2, [2], lambda x: x * 2
    Base.row[0] = 2


@pytest.mark.parametrize("made", [tg.compile, lambda f: jit.trace(f, tg.ones(1))], ids=["compile", "trace"])
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_program_reads_is_noticed(name, made, monkeypatch):
    runs, x = [(f, made(f)) for f in (NET, of_an_object)], tg.ones(1)
    before = [f(x).item() for f, _ in runs]
    assert [run(x).item() for _, run in runs] == before
    CHANGES[name](monkeypatch)
    expected = [f(x).item() for f, _ in runs]
    assert expected != before and [run(x).item() for _, run in runs] == expected


def test_forward_of_a_class_of_the_library_is_noticed(monkeypatch):
    net = nn.Sequential(nn.Linear(1, 1))
    compiled = tg.compile(net)
    compiled(tg.ones(1))
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x * 100)
    assert compiled(tg.ones(1)).item() == 100


def test_what_is_not_read_is_no_reason_to_write_a_program_down_anew(monkeypatch):
    compiled = tg.compile(NET)
    compiled(tg.ones(1))
    for i in range(5):
        monkeypatch.setattr(Settings, "other", i, raising=False)
        monkeypatch.setattr(Base, "unread", i, raising=False)
        monkeypatch.setattr(settings, "counts", i, raising=False)
        compiled(tg.ones(1))
    assert compiled.explain().endswith(": 1 graph")
