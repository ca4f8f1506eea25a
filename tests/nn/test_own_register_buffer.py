"""Classes that have a `register_buffer` of their own: it sees what is assigned."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


class Told(nn.Module):
    def register_buffer(self, name, tensor, persistent=True):
        self.__dict__.setdefault("told", []).append((name, persistent))
        super().register_buffer(name, tensor, persistent)


class Untold(nn.Module):
    def register_buffer(self, name, tensor, **others):
        self.__dict__.setdefault("told", []).append((name, others))
        super().register_buffer(name, tensor, **others)


def test_it_sees_buffers_that_are_assigned_for_the_first_time_and_again():
    m = Told()
    m.a, m.b = nn.Buffer(tg.ones(1)), nn.Buffer(tg.ones(1), persistent=False)
    m.a, m.b = tg.zeros(1), None
    m.b = tg.zeros(1)
    assert m.told == [("a", True), ("b", False), ("a", True), ("b", False), ("b", False)]
    assert list(m.state_dict()) == ["a"] and m.a.item() == 0


def test_one_that_takes_no_persistent_is_not_told_it():
    m = Untold()
    m.a = nn.Buffer(tg.ones(1))
    m.a = tg.zeros(1)
    assert m.told == [("a", {})] * 2 and list(m.state_dict()) == ["a"]
    with pytest.raises(RuntimeError, match="register_buffer.. takes no argument 'persistent'.* 'b'"):
        m.b = nn.Buffer(tg.ones(1), persistent=False)
