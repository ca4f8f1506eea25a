"""tensor(), as_tensor() and asarray() convert data and do not ask its `__torch_function__`; modes see the calls."""

import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import overrides


class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "asked"


class Sub(tg.Tensor):
    pass


class Record(overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("make", [tg.tensor, tg.as_tensor, tg.asarray], ids=lambda f: f.__name__)
def test_data_with_an_override_is_converted_or_refused_as_any_other(make):
    with pytest.raises(RuntimeError, match="Could not infer dtype of Duck"):
        make(Duck())
    assert tg.full((2,), Duck()) == "asked"
    with Record() as mode:
        make([1.0])
    assert mode.seen == [make.__name__]


def test_a_subclass_is_copied_as_a_tensor_and_shared_as_it_is():
    t = tg.ones(2).as_subclass(Sub)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert type(tg.tensor(t)) is tg.Tensor
    assert tg.as_tensor(t) is t and type(tg.asarray(t)) is Sub
    assert type(tg.as_tensor([t[0], t[1]])) is tg.Tensor


def test_new_tensor_asks_the_tensor_and_not_the_data():
    t = tg.ones(2).as_subclass(Sub)
    with pytest.warns(UserWarning, match=r"rather than t.new_tensor\(t\)"):
        assert type(tg.ones(2).new_tensor(t)) is tg.Tensor
    assert type(t.new_tensor([1.0])) is Sub


def test_a_handler_that_somebody_registered_is_asked():
    class Foreign:
        pass

    with overrides.register(Foreign, lambda func, types, args, kwargs: "handled"):
        assert tg.tensor(Foreign()) == "handled"


def test_a_plain_method_is_told_once_a_type():
    class Plain:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 5

    with pytest.warns(UserWarning, match="as a plain method is deprecated and will be an error in future.*Plain"):
        assert tg.add(tg.ones(1), Plain()) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tg.add(tg.ones(1), Plain()) == 5
        assert tg.add(tg.ones(1), Duck()) == "asked"


def test_an_unknown_namespace_has_no_ops_and_says_so_when_one_is_asked_for():
    assert not hasattr(tg.ops.nowhere, "op") and dir(tg.ops.nowhere) == []
    with pytest.raises(AttributeError, match="no namespace 'nowhere'"):
        tg.ops.nowhere.op
    held = tg.ops.later
    lib = tg.library.Library("later", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CompositeImplicitAutograd")
    assert held.f(tg.ones(1)).item() == 2
    lib._destroy()
    assert not hasattr(tg.ops.later, "f")
