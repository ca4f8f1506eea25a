"""`check` runs every overridable function with instances of a class and tells what became of each call."""

import json

import pytest

import tinygrad_ext as tg
from tinygrad_ext import overrides


class Plain(tg.Tensor):
    """A subclass that says nothing."""


class Wrapper:
    def __init__(self, data):
        self.data = data

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is tg.cumsum:
            return NotImplemented
        result = func(*cls.unwrap(args), **cls.unwrap(kwargs or {}))
        return result if func is tg.exp else cls(result) if isinstance(result, tg.Tensor) else result

    @classmethod
    def unwrap(cls, value):
        if isinstance(value, cls):
            return value.data
        if isinstance(value, dict):
            return {k: cls.unwrap(v) for k, v in value.items()}
        return type(value)(map(cls.unwrap, value)) if type(value) in (list, tuple) else value


def test_a_subclass_that_says_nothing_is_handled_everywhere():
    report = overrides.check(Plain)
    assert report.counts["handled"] > 700
    assert report.of("falls back") == report.of("raises") == []
    assert len(report.rows) == sum(map(len, overrides.get_overridable_functions().values())) - _doubles()


def _doubles():
    """Functions that stand in two namespaces."""
    functions = [f for found in overrides.get_overridable_functions().values() for f in found]
    return len(functions) - len(set(functions))


def test_each_status_says_what_happened():
    report = overrides.check(Wrapper, functions=[tg.add, tg.exp, tg.cumsum, tg.cat, tg.equal, tg.max])
    assert {row.name: (row.status, row.detail.partition(":")[0]) for row in report.rows} == {
        "tinygrad_ext.add": ("handled", "returned Wrapper"),
        "tinygrad_ext.exp": ("falls back", "returned Tensor"),
        "tinygrad_ext.cumsum": ("raises", "TypeError"),
        "tinygrad_ext.cat": ("handled", "returned Wrapper"),
        "tinygrad_ext.equal": ("handled", "returned bool"),
        "tinygrad_ext.max": ("handled", "returned Wrapper"),
    }
    assert report.counts == {"handled": 4, "falls back": 1, "raises": 1, "skipped": 0}


def test_the_report_is_a_table_and_plain_values():
    report = overrides.check(Wrapper, functions=[tg.add, tg.exp])
    assert str(report).splitlines() == [
        "Wrapper: 1 handled, 1 falls back",
        "handled     tinygrad_ext.add  returned Wrapper",
        "falls back  tinygrad_ext.exp  returned Tensor",
    ]
    assert json.loads(json.dumps(report.to_dict())) == {
        "class": "Wrapper",
        "counts": {"handled": 1, "falls back": 1, "raises": 0, "skipped": 0},
        "functions": {
            "tinygrad_ext.add": {"status": "handled", "detail": "returned Wrapper"},
            "tinygrad_ext.exp": {"status": "falls back", "detail": "returned Tensor"},
        },
    }


def test_a_factory_makes_the_instances():
    class Scaled(Wrapper):
        def __init__(self, data, scale=None):
            super().__init__(data)
            self.scale = scale

    seen = []

    def factory(t):
        seen.append(type(t))
        return Scaled(t, 2)

    assert overrides.check(Scaled, factory, functions=[tg.mul]).counts["handled"] == 1
    assert seen == [tg.Tensor, tg.Tensor]


def test_a_factory_that_raises_skips_the_function():
    def factory(t):
        raise ValueError("only squares")

    (row,) = overrides.check(Wrapper, factory, functions=[tg.add]).rows
    assert (row.status, row.detail) == ("skipped", "the factory raised ValueError: only squares")


def test_a_class_that_is_not_asked_falls_back_or_raises():
    class Disabled(tg.Tensor):
        __torch_function__ = overrides._disabled_torch_function_impl

    class Unknown:
        def __init__(self, t):
            pass

    (row,) = overrides.check(Disabled, functions=[tg.add]).rows
    assert (row.status, row.detail) == ("falls back", "was not asked")
    (row,) = overrides.check(Unknown, functions=[tg.add]).rows
    assert row.status == "raises"
    assert "must be Tensor, not Unknown" in row.detail


def test_registered_handlers_can_be_checked():
    class Theirs:
        def __init__(self, t):
            self.t = t

    def handler(func, types, args, kwargs):
        return Theirs(func(*[a.t if isinstance(a, Theirs) else a for a in args], **kwargs))

    with overrides.register(Theirs, handler):
        assert overrides.check(Theirs, functions=[tg.add, tg.nn.functional.relu]).counts["handled"] == 2


def test_the_random_state_is_left_alone():
    tg.manual_seed(0)
    want = tg.rand(3).tolist()
    tg.manual_seed(0)
    overrides.check(Plain, functions=[tg.Tensor.normal_, tg.bernoulli])
    assert tg.rand(3).tolist() == want


def test_an_override_that_recurses_without_end_is_one_row():
    class Endless(tg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    (row,) = overrides.check(Endless, functions=[tg.add]).rows
    assert (row.status, row.detail.partition(":")[0]) == ("raises", "RecursionError")


def test_an_override_that_ends_the_program_is_one_row():
    class Leaving(tg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise SystemExit(3)

    (row,) = overrides.check(Leaving, functions=[tg.add]).rows
    assert (row.status, row.detail) == ("raises", "SystemExit: 3")


def test_only_classes_can_be_checked():
    with pytest.raises(TypeError, match="argument 'cls' must be a class, not int"):
        overrides.check(3)
