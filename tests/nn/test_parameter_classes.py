"""Subclasses of Parameter as PyTorch has them written: arguments go to `__new__`, `__init__` makes nothing."""

import copy

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor
from tinygrad_ext.nn import Parameter


class Noted(Tensor):
    @staticmethod
    def __new__(cls, data, *, note=None, requires_grad=False):
        made = Tensor._make_subclass(cls, data, requires_grad)
        made.note = note
        return made


class ByTensor(Noted, Parameter):
    def __new__(cls, data, note=None, requires_grad=True):
        return Noted.__new__(cls, data, note=note, requires_grad=requires_grad)


class BySuper(Parameter):
    def __new__(cls, data=None, note=None, requires_grad=True):
        made = super().__new__(cls, data, requires_grad)
        made.note = note
        return made


@pytest.mark.parametrize("cls", [ByTensor, BySuper])
def test_arguments_of_an_own_new_are_not_those_of_init(cls):
    data = tg.ones(2)
    p = cls(data, note="kept", requires_grad=False)
    assert (type(p), p.note, p.requires_grad, p.data_ptr()) == (cls, "kept", False, data.data_ptr())
    assert cls(data, "kept").requires_grad and isinstance(p, Parameter)
    assert copy.deepcopy(cls(data)).tolist() == [1, 1]


def test_an_init_that_calls_super_without_arguments_keeps_the_data():
    class Counted(Parameter):
        def __init__(self, data, count=0, requires_grad=True):
            super().__init__()
            self.count = count

    p = Counted(tg.ones(2), count=3)
    assert (p.tolist(), p.count, p.requires_grad) == ([1, 1], 3, True)
    assert not Counted(tg.ones(2), requires_grad=False).requires_grad


def test_an_init_that_makes_the_data_gives_them_to_super():
    class Zeros(Parameter):
        def __init__(self, like):
            super().__init__(tg.zeros_like(like), requires_grad=False)

    p = Zeros(tg.ones(3))
    assert p.tolist() == [0, 0, 0] and not p.requires_grad


def test_new_called_by_name_fills_what_it_makes():
    class Mine(Parameter):
        def __init__(self, data):
            """Nothing is left to do."""

    assert Mine(tg.ones(2)).tolist() == [1, 1]
    with pytest.raises(TypeError, match="unexpected keyword argument 'note'"):
        Parameter(tg.ones(2), note=1)
