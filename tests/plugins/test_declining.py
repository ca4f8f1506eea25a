"""A plugin whose handlers all decline changes nothing: every call gives what it gives without it, errors included."""

import importlib
import operator
import re

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, overrides, plugins
from tinygrad_ext.plugins import table
from tinygrad_ext.registry import foreign

HANDLERS = """
from tinygrad_ext import hookimpl

asked = []

def handle(func, types, args, kwargs):
    asked.append(func)
    return NotImplemented

@hookimpl
def tgx_register_overrides(register):
    register("tgx_theirs", handle)
"""
# what other libraries' objects can do: be a sequence, lend an array, take part in operators, stand for a number
THEIRS = """
import numpy as np

class Column:
    def __init__(self, values):
        self.values = np.asarray(values)
    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)
    def __len__(self):
        return len(self.values)
    def __getitem__(self, i):
        return self.values[i]
    def __gt__(self, other):
        return Column(self.values > np.asarray(other))
    def __radd__(self, other):
        return "Column.__radd__", type(other).__name__
    def __rmul__(self, other):
        return "Column.__rmul__", type(other).__name__
    def __add__(self, other):
        return "Column.__add__", type(other).__name__

class Index(int):
    pass

class Number:
    def __index__(self):
        return 1
    def __float__(self):
        return 1.0

class Lender:
    def __init__(self, values):
        self.values = np.asarray(values)
    def __dlpack__(self, **more):
        return self.values.__dlpack__(**more)
    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

class Mute:
    pass

class Own:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "own", func.__name__
"""

VALUES = {
    "column": lambda m: m.Column([1.0, 2.0, 3.0]),
    "mask": lambda m: m.Column([1.0, 2.0, 3.0]) > 1,
    "places": lambda m: m.Column([2, 0]),
    "index": lambda m: m.Index(1),
    "number": lambda m: m.Number(),
    "lender": lambda m: m.Lender([1.0, 2.0, 3.0]),
    "mute": lambda m: m.Mute(),
    "own": lambda m: m.Own(),
}


def assign(x, key, value):
    x = x.clone()
    x[key] = value
    return x


def attribute(x, name, value):
    x = x.clone()
    setattr(x, name, value)
    return x


CALLS = {
    "tensor": lambda x, v: tg.tensor(v),
    "tensor of a list": lambda x, v: tg.tensor([v, v]),
    "tensor with a dtype": lambda x, v: tg.tensor(v, dtype=tg.float64),
    "as_tensor": lambda x, v: tg.as_tensor(v),
    "asarray": lambda x, v: tg.asarray(v),
    "new_tensor": lambda x, v: x.new_tensor(v),
    "Tensor": lambda x, v: tg.Tensor(v).shape,
    "x[v]": lambda x, v: x[v],
    "x[v, None]": lambda x, v: x[v, None],
    "x[[v]]": lambda x, v: x[[v]],
    "x[v] = 0": lambda x, v: assign(x, v, 0),
    "x[0] = v": lambda x, v: assign(x, 0, v),
    "x[:] = v": lambda x, v: assign(x, slice(None), v),
    **{f"x {op.__name__} v": lambda x, v, op=op: op(x, v) for op in (operator.add, operator.mul, operator.sub)},
    **{f"v {op.__name__} x": lambda x, v, op=op: op(v, x) for op in (operator.add, operator.mul, operator.pow)},
    **{f"x {op.__name__} v": lambda x, v, op=op: op(x, v) for op in (operator.eq, operator.lt, operator.matmul)},
    "x += v": lambda x, v: operator.iadd(x.clone(), v),
    "add": lambda x, v: tg.add(x, v),
    "add of v": lambda x, v: tg.add(v, x),
    "add by name": lambda x, v: tg.add(x, other=v),
    "add with alpha": lambda x, v: tg.add(x, x, alpha=v),
    "add_": lambda x, v: x.clone().add_(v),
    "out": lambda x, v: tg.add(x, x, out=v),
    "neg": lambda x, v: tg.neg(v),
    "sum over dim": lambda x, v: tg.sum(x[None], dim=v),
    "reshape": lambda x, v: x.reshape(v, -1),
    "zeros": lambda x, v: tg.zeros(v),
    "full": lambda x, v: tg.full((2,), v),
    "cat": lambda x, v: tg.cat([x, v]),
    "stack": lambda x, v: tg.stack((v, v)),
    "where": lambda x, v: tg.where(v, x, x),
    "einsum": lambda x, v: tg.einsum("i,i", x, v),
    "index_select": lambda x, v: tg.index_select(x, 0, v),
    "allclose": lambda x, v: tg.allclose(x, v),
    "relu": lambda x, v: nn.functional.relu(v),
    "linear": lambda x, v: nn.functional.linear(v, x),
    "dropout": lambda x, v: nn.functional.dropout(x, v, training=False),
    "module": lambda x, v: nn.Flatten(0)(v),
    "result_type": lambda x, v: tg.result_type(x, v),
    "is_tensor": lambda x, v: tg.is_tensor(v),
    "to": lambda x, v: x.to(v),
    "type_as": lambda x, v: x.type_as(v),
    "x.data = v": lambda x, v: attribute(x, "data", v),
    "x.grad = v": lambda x, v: attribute(x, "grad", v),
    "method of Tensor": lambda x, v: tg.Tensor.neg(v),
    "attribute of Tensor": lambda x, v: tg.Tensor.shape.__get__(v),
    "backward": lambda x, v: (x * 2).requires_grad_().backward(v),
    "constant_": lambda x, v: nn.init.constant_(x.clone(), v),
    "numpy": lambda x, v: np.add(x.numpy(), v),
    "own function": lambda x, v: by_hand(v),
    "own function, wrapped": lambda x, v: wrapped(v),
}


def by_hand(v):
    if overrides.has_torch_function((v,)):
        return overrides.handle_torch_function(by_hand, (v,), v)
    return "by hand", type(v).__name__


@overrides.wrap_torch_function(lambda v: (v,))
def wrapped(v):
    return "wrapped", type(v).__name__


def outcome(call, v):
    """What a call gives, in plain values; the words on who declined are no part of it."""
    try:
        with np.errstate(all="ignore"):
            result = call(tg.tensor([10, 20, 30.0]), v)
    except Exception as error:
        text = re.sub(
            r"\. The handler of \S+ 1\.0 for \S+ declined; convert the argument to a Tensor first| at 0x\w+",
            "",
            str(error),
        )
        return type(error).__name__, text
    if isinstance(result, tg.Tensor):
        return type(result).__name__, str(result.dtype), result.requires_grad, result.tolist()
    return re.sub(r" at 0x\w+", "", repr(result))


@pytest.fixture
def theirs(site):
    """The module of types, and an installed plugin that declines whatever it is asked about them."""
    site.install(
        "tgx-decliner",
        files={"tgx_decliner.py": HANDLERS, "tgx_theirs.py": THEIRS},
        entry_points="[tinygrad_ext.overrides]\ntgx_theirs = tgx_decliner\n",
    )
    import tgx_theirs

    return tgx_theirs


@pytest.mark.parametrize("value", VALUES)
def test_every_call_gives_what_it_gives_without_the_plugin(theirs, value):
    make = VALUES[value]
    installed = table.exchange([], [])
    foreign.refresh()
    without = {name: outcome(call, make(theirs)) for name, call in CALLS.items()}
    table.exchange(*installed)
    foreign.refresh()
    found = {name: outcome(call, make(theirs)) for name, call in CALLS.items()}
    assert {n: (found[n], without[n]) for n in CALLS if found[n] != without[n]} == {}
    if value != "own":
        assert len(importlib.import_module("tgx_decliner").asked) > 20  # it was there, and was asked


def test_conversion_runs_after_all_declined(theirs):
    column = theirs.Column([1.0, 2.0, 3.0])
    x = tg.tensor([10.0, 20, 30])
    assert tg.tensor(column).tolist() == tg.as_tensor(column).tolist() == [1, 2, 3]
    assert x[column > 1].tolist() == [20, 30]
    assert x + column == ("Column.__radd__", "Tensor") and column + x == ("Column.__add__", "Tensor")
    assert plugins.info("tgx-decliner").state == "active"


def test_the_error_of_a_call_that_nobody_can_carry_out_says_who_declined(theirs):
    with pytest.raises(
        TypeError, match=r"must be Tensor, not Mute\. The handler of tgx-decliner 1\.0 for tgx_theirs\.Mute"
    ):
        tg.add(tg.ones(1), theirs.Mute())
    with pytest.raises(
        TypeError, match=r"must be Tensor|element 0.*\. The handler of tgx-decliner 1\.0 for tgx_theirs\.Mute"
    ):
        tg.stack([theirs.Mute()])


def test_an_error_of_a_handler_s_own_is_not_taken_for_a_refusal(theirs):
    def refuse(func, types, args, kwargs):
        raise TypeError("told by the handler")

    plugins.disable("tgx-decliner")
    with overrides.register(theirs.Column, refuse), pytest.raises(TypeError, match="told by the handler"):
        tg.ones(3) + theirs.Column([1.0])


def test_a_mode_that_declines_too_is_told_in_the_error(theirs):
    class Shy(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Shy(), pytest.raises(TypeError, match="no implementation found .*Shy"):
        tg.tensor(theirs.Column([1.0]))


def test_a_mode_sees_the_call_once_and_the_conversion_runs(theirs):
    seen = []

    class See(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with See():
        assert tg.ones(3)[theirs.Column([1.0, 2.0, 3.0]) > 1].tolist() == [1, 1]
    assert seen == ["ones", "__getitem__", "tolist"]


def test_what_is_computed_for_a_declined_call_is_recorded(theirs):
    x = tg.tensor([10.0, 20, 30], requires_grad=True)
    x[theirs.Column([1.0, 2.0, 3.0]) > 1].sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_handlers_are_asked_again_about_the_next_call(theirs):
    """Declining one call switches nothing off, whatever became of the call."""
    asked = []
    plugins.disable("tgx-decliner")
    with overrides.register(theirs.Column, lambda func, *rest: asked.append(func) or NotImplemented):
        column = theirs.Column([1.0])
        with pytest.raises(TypeError):
            tg.neg(column)
        assert tg.ones(1)[column > 0].tolist() == [1]
        with pytest.raises(TypeError):
            tg.neg(column)
    assert asked == [tg.neg, tg.Tensor.__getitem__, tg.neg]


def test_explain_shows_who_declined_and_that_the_engine_answered(theirs):
    found = overrides.explain(tg.Tensor.__getitem__, tg.ones(3), theirs.Column([1.0, 2.0, 3.0]) > 1)
    assert [rung.kind for rung in found.rungs] == ["registered handler", "engine"]
    assert "by tgx-decliner 1.0: returned NotImplemented" in str(found)
