"""Subclasses of Parameter: what is computed of them is a plain tensor, and a tensor may become one in place."""

import copy
import gc
import pickle
import sys
import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, nn


class Named(nn.Parameter):
    def name_of(self):
        return "named"


class Other(nn.Parameter):
    pass


class Kept(Tensor):
    """A subclass whose results keep the class."""


COMPUTED = {
    "operator": lambda p: p * 2,
    "reflected operator": lambda p: tg.ones(2) + p,
    "comparison": lambda p: p == p,
    "function": lambda p: nn.functional.linear(tg.ones(2), p[None]),
    "view": lambda p: p.view(2, 1),
    "item": lambda p: p[0],
    "detach": lambda p: p.detach(),
    "data": lambda p: p.data,
    "clone": lambda p: p.clone(),
    "like": tg.ones_like,
    "conversion": lambda p: p.double(),
}


@pytest.mark.parametrize("call", COMPUTED.values(), ids=list(COMPUTED))
def test_what_is_computed_of_a_subclass_of_parameter_is_a_plain_tensor(call):
    assert type(call(Named(tg.ones(2)))) is Tensor


def test_what_hands_back_the_parameter_itself_keeps_its_class():
    p = Named(tg.ones(2))
    assert p.requires_grad_() is p
    for made in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(made) is Named
    module = nn.Module()
    module.weight = p
    assert type(module.double().weight) is Named
    p.sum().backward()
    assert type(p.grad) is Tensor


def test_a_parameter_of_a_subclass_of_tensor_keeps_that_class():
    kept = nn.Parameter(tg.ones(2).as_subclass(Kept))
    for result in (kept * 2, kept * Named(tg.ones(2)), Named(tg.ones(2)) * kept, kept.data):
        assert isinstance(result, Kept)


def test_a_parameter_of_a_subclass_that_asks_super_keeps_that_class():
    class Asking(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is tg.add:
                return "mine"
            return super().__torch_function__(func, types, args, kwargs or {})

    p = nn.Parameter(tg.ones(2).as_subclass(Asking))
    assert isinstance(p, nn.Parameter)
    for result in (p * 2, p.detach(), p.clone(), p.data, p.view(2, 1)):
        assert type(result) is Asking and tg.add(result, 1) == "mine"
    assert tg.add(p, 1) == "mine"


def test_a_tensor_becomes_one_of_another_class_in_place():
    p = nn.Parameter(tg.ones(2))
    handle, data = id(p), p.data_ptr()
    p.__class__ = Named
    assert type(p) is Named and p.name_of() == "named"
    p.note = p  # a circle
    p.__class__ = Other
    assert type(p) is Other and p.note is p
    p.__class__ = nn.Parameter
    assert type(p) is nn.Parameter and type(p * 2) is Tensor
    assert (id(p), p.data_ptr()) == (handle, data)
    gone = weakref.ref(p)
    del p
    gc.collect()
    assert gone() is None


def test_classes_are_held_by_their_instances_alone():
    class Short(nn.Parameter):
        pass

    before = sys.getrefcount(Short)
    for _ in range(50):
        t = tg.ones(2)
        t.__class__ = Short
        (t * 2).sum()
        t.__class__ = Tensor
        t.__class__ = Short
    del t
    gc.collect()
    assert sys.getrefcount(Short) == before
