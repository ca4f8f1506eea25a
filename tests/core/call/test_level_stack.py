"""Levels nest: who is asked first, what is off meanwhile, and how the stack is left."""

import threading

import numpy as np
import pytest
from levels import Box, Recorder
from tinygrad_ext.core.call.levels import levels_on

import tinygrad_ext as tg
from tinygrad_ext.overrides import Observer, TorchFunctionMode, active_levels


def test_the_level_entered_last_is_asked_first():
    order = []

    class Named(Observer):
        def __init__(self, name):
            self.name = name

        def process(self, operation, args):
            order.append(self.name)
            return operation(*args)

    a = tg.ones(1)
    with Named("outer"), Named("inner"):
        a.neg()
    assert order == ["inner", "outer"]


def test_an_observer_sees_the_program_or_what_the_transforms_made_of_it():
    class After(Recorder):
        after_transforms = True

    class Negate(Box):
        def process(self, operation, args):
            return self.wrap(operation(*map(self.unwrap, args)).neg())

    a = tg.ones(1)
    with Negate() as level:
        x = level.wrap(a)
        with After() as after, Recorder() as before:
            y = x.exp()
    assert before.names == ["aten::exp"]
    assert after.names == ["aten::exp", "aten::neg"]
    assert type(before.seen[0][1][0]) is not tg.Tensor
    assert type(after.seen[0][1][0]) is tg.Tensor
    assert y.value.item() == pytest.approx(-np.e)


def test_levels_are_off_while_one_processes_and_may_be_entered_there():
    class Outer(Observer):
        def process(self, operation, args):
            assert active_levels() == []
            with Recorder() as self.inner:
                return operation(*args)

    a = tg.ones(1)
    with Outer() as outer:
        assert active_levels() == [outer]
        a.neg()
    assert outer.inner.names == ["aten::neg"]
    assert not levels_on()


def test_an_observer_of_what_transforms_made_may_be_entered_while_one_processes():
    class After(Recorder):
        after_transforms = True

    class Watched(Box):
        def process(self, operation, args):
            with After() as self.after:
                result = super().process(operation, args)
            return result

    with Recorder() as outer, Watched() as level:
        x = level.wrap(tg.ones(2)).exp()
        assert active_levels() == [outer, level]
    assert level.after.names == ["aten::exp"]
    assert outer.names.count("aten::exp") == 1
    assert x.value.tolist() == tg.ones(2).exp().tolist()


def test_an_error_in_a_level_leaves_the_stack_as_it_was():
    class Fails(Observer):
        def process(self, operation, args):
            raise KeyError("in the level")

    a = tg.ones(1)
    with Fails() as level:
        for _ in range(2):
            with pytest.raises(KeyError):
                a.neg()
            assert active_levels() == [level]
    assert a.neg().item() == -1


def test_a_level_is_entered_once_and_left_where_it_was_entered():
    with Recorder() as level, pytest.raises(RuntimeError, match="active already"):
        level.__enter__()
    with pytest.raises(RuntimeError, match="not active in this thread"):
        level.__exit__(None, None, None)
    outer, inner = Recorder().__enter__(), Recorder().__enter__()
    outer.__exit__()
    tg.ones(1)
    inner.__exit__()
    assert (outer.names, inner.names) == ([], ["aten::ones"])


def test_another_thread_has_levels_of_its_own():
    with Recorder() as recorder:
        thread = threading.Thread(target=lambda: tg.zeros(2) + 1)
        thread.start()
        thread.join()
    assert recorder.seen == []


def test_modes_are_asked_before_levels():
    order = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append("mode")
            return func(*args, **(kwargs or {}))

    class Last(Observer):
        def process(self, operation, args):
            order.append("level")
            return operation(*args)

    a = tg.ones(1)
    with Last(), Mode():
        a.neg()
    assert order == ["mode", "level"]


# ---- cost ----------------------------------------------------------------------------------------------------------
