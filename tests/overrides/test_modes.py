"""Modes see every public call of their thread, innermost first, before the types of the arguments."""

import threading

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, nn, overrides
from tinygrad_ext.nn import functional as F
from tinygrad_ext.overrides import BaseTorchFunctionMode, TorchFunctionMode


class Log(TorchFunctionMode):
    """Notes (name, func, types) of each call and passes it on."""

    def __init__(self, name="", into=None):
        self.name, self.seen = name, [] if into is None else into

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append((self.name, func, types))
        return func(*args, **(kwargs or {}))

    @property
    def funcs(self):
        return [func for _, func, _ in self.seen]


def seen(call):
    with Log() as log:
        call()
    return log.funcs


# ---- what is seen


@pytest.mark.parametrize(
    "call, func",
    [
        (lambda t: tg.zeros(2), tg.zeros),
        (lambda t: tg.arange(3), tg.arange),
        (lambda t: tg.randn(2), tg.randn),
        (lambda t: tg.tensor([1.0]), tg.tensor),
        (lambda t: tg.as_tensor([1.0]), tg.as_tensor),
        (lambda t: tg.empty(2), tg.empty),
        (lambda t: t + t, Tensor.add),
        (lambda t: 1 - t, Tensor.__rsub__),
        (lambda t: t.exp(), Tensor.exp),
        (lambda t: t[0], Tensor.__getitem__),
        (lambda t: t.__setitem__(0, 1.0), Tensor.__setitem__),
        (lambda t: tg.add(t, t, out=t), tg.add),
        (lambda t: t.mul_(2), Tensor.mul_),
        (lambda t: F.softmax(t, dim=0), F.softmax),
        (lambda t: t.shape, Tensor.shape.__get__),
        (lambda t: setattr(t, "grad", None), Tensor.grad.__set__),
        (lambda t: delattr(t, "grad"), Tensor.grad.__delete__),
        (lambda t: setattr(t, "requires_grad", False), Tensor.requires_grad.__set__),
        (lambda t: setattr(t, "data", t), Tensor.data.__set__),
        (lambda t: t.size(0), Tensor.size),
        (lambda t: t.numpy(), Tensor.numpy),
        (lambda t: t.tolist(), Tensor.tolist),
        (lambda t: len(t), Tensor.__len__),
        (lambda t: bool(t[:1]), Tensor.__bool__),
        (lambda t: int(t[:1]), Tensor.__int__),
        (lambda t: float(t[:1]), Tensor.__float__),
        (lambda t: complex(t[:1]), Tensor.__complex__),
        (lambda t: 1.0 in t, Tensor.__contains__),
        (lambda t: repr(t), Tensor.__repr__),
        (lambda t: format(t), Tensor.__format__),
        (lambda t: [None for _ in t][1:], Tensor.unbind),
        (lambda t: tg.numel(t), tg.numel),
        (lambda t: nn.init.zeros_(t), nn.init.zeros_),
    ],
)
def test_a_mode_sees_a_call_once_by_its_public_name(call, func):
    t = tg.ones(2)
    funcs = [f for f in seen(lambda: call(t)) if f != Tensor.__getitem__ or func is Tensor.__getitem__]
    assert func in funcs and funcs.count(func) == 1
    assert len(funcs) == 1 or func == Tensor.unbind  # iterating asks for the number of dimensions first


def test_a_composite_is_one_call():
    t = tg.ones(2, 3)
    assert seen(lambda: F.normalize(t)) == [F.normalize]


def test_factories_come_without_types_and_attributes_with_that_of_the_tensor():
    t, p = tg.ones(2), nn.Parameter(tg.ones(2))
    with Log() as log:
        tg.zeros(2), t.shape, p.shape, t + t
    assert [types for _, _, types in log.seen] == [(), (Tensor,), (nn.Parameter,), ()]


def test_switches_and_seeds_are_not_seen():
    assert seen(lambda: (tg.is_grad_enabled(), tg.manual_seed(0), tg.get_default_dtype(), tg.is_tensor(1))) == []


def test_a_mode_sees_functions_and_backward_as_one_call_each():
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = tg.ones(2, requires_grad=True)
    assert seen(lambda: Double.apply(x).sum().backward()) == [Double.apply, Tensor.sum, Tensor.backward]
    assert x.grad.tolist() == [2, 2]


# ---- nesting


def test_modes_are_asked_innermost_first_and_before_types():
    order = []

    class Duck:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append(("duck", func, types))

    with Log("outer", order), Log("inner", order):
        tg.add(Duck(), 1)
    assert order == [("inner", tg.add, (Duck,)), ("outer", tg.add, (Duck,)), ("duck", tg.add, (Duck,))]


def test_a_mode_is_off_while_its_handler_runs():
    class Inside(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            assert self not in overrides._get_current_function_mode_stack()
            return func(*args, **(kwargs or {})) + tg.ones(1)

    with Inside() as mode:
        made = tg.zeros(1)
    assert made.tolist() == [1] and mode.calls == 1


def test_the_same_mode_may_be_entered_twice_and_is_asked_twice():
    mode = Log()
    with mode, mode:
        tg.zeros(1)
    assert mode.funcs == [tg.zeros, tg.zeros]


def test_a_mode_may_enter_itself_in_its_handler_for_the_calls_inside():
    class Deep(TorchFunctionMode):
        depth, deepest = 0, 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.depth += 1
            self.deepest = max(self.depth, self.deepest)
            try:
                with self:
                    return overrides.redispatch_function(func, types, args, kwargs)
            finally:
                self.depth -= 1

    def scaled(a):
        if overrides.has_torch_function_unary(a):
            return overrides.handle_torch_function(scaled, (a,), a)
        return a * 3 + 1

    with Deep() as mode:
        assert scaled(tg.ones(1)).tolist() == [4]
    assert mode.deepest == 2


def test_a_mode_that_declines_passes_on_to_the_modes_and_types_around():
    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    class Duck:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "duck"

    with Log() as log, Declines():
        tg.zeros(1)
    assert log.funcs == [tg.zeros]
    with Declines():
        assert tg.add(Duck(), 1) == "duck"


def test_when_only_a_mode_could_answer_and_declines_the_error_names_it():
    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __repr__(self):
            return "<the mode of this test>"

    with pytest.raises(TypeError, match="'tinygrad_ext.zeros'.*mode <the mode of this test>"), Declines():
        tg.zeros(1)
    t = tg.ones(1)
    with pytest.raises(TypeError, match=r"'tinygrad_ext\.Tensor\.add'.*mode <the mode of this test>"), Declines():
        t + t


def test_an_inner_mode_may_answer_in_the_place_of_outer_ones():
    class Answers(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "mine"

    with Log() as log, Answers():
        assert tg.zeros(1) == "mine"
    assert log.seen == []


def test_the_base_mode_changes_nothing_and_the_abstract_one_says_what_is_missing():
    with BaseTorchFunctionMode():
        assert tg.ones(2).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="must define __torch_function__"), TorchFunctionMode():
        tg.ones(2)


def test_modes_by_hand():
    mode = Log()
    overrides._push_mode(mode)
    try:
        assert overrides._get_current_function_mode() is mode
        tg.zeros(1)
        with overrides._pop_mode_temporarily() as top:
            assert top is mode and overrides._get_current_function_mode() is None
            tg.ones(1)
    finally:
        assert overrides._pop_mode() is mode
    assert mode.funcs == [tg.zeros]
    assert overrides._get_current_function_mode_stack() == []


def test_modes_belong_to_one_thread():
    with Log() as log:
        thread = threading.Thread(target=lambda: tg.zeros(2) + 1)
        thread.start()
        thread.join()
    assert log.seen == []


def test_many_threads_with_modes_of_their_own_do_not_meet():
    wrong = []

    def work(n):
        with Log() as log:
            for _ in range(200):
                tg.ones(2) + n
        if log.funcs != [tg.ones, Tensor.add] * 200:
            wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


# ---- switching off


def test_types_are_not_asked_where_subclass_dispatch_is_off_but_modes_are():
    class Sub(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("asked")

    s = tg.ones(2)._make_subclass(Sub, tg.ones(2))
    with Log() as log, overrides.DisableTorchFunctionSubclass():
        assert type(s + s) is Tensor
    assert log.funcs == [Tensor.add]
    with overrides.DisableTorchFunctionSubclass(), pytest.raises(AssertionError):
        with overrides._EnableTorchFunction():
            s + s


def test_nobody_is_asked_where_all_is_off():
    with Log() as log, overrides.DisableTorchFunction():
        tg.ones(2) + 1
        assert not overrides.has_torch_function((tg.ones(2),))
        with overrides.DisableTorchFunctionSubclass():
            tg.ones(2)
        tg.ones(2).shape
    assert log.seen == []


def test_a_disabled_type_is_a_plain_tensor_to_everyone():
    class Plain(Tensor):
        __torch_function__ = overrides._disabled_torch_function_impl

    p = tg.ones(2).as_subclass(Plain)
    assert not overrides.has_torch_function((p,))
    assert type(p + p) is Tensor and p.shape == (2,)
    assert Plain.__torch_function__(tg.add, (), (p, 1)).tolist() == [2, 2]


def test_dispatch_is_back_after_an_error_inside():
    class Sub(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "asked"

    s = tg.ones(2)._make_subclass(Sub, tg.ones(2))
    for off in (overrides.DisableTorchFunction, overrides.DisableTorchFunctionSubclass):
        with pytest.raises(ValueError), off():
            raise ValueError
        assert s.exp() == "asked"


def test_types_are_asked_again_under_reentrant_dispatch():
    asked = []

    class Sub(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    s = tg.ones(2).as_subclass(Sub)
    with overrides.DisableTorchFunctionSubclass():
        s.exp()
        with overrides.enable_reentrant_dispatch():
            s.sin()
        s.cos()
    assert asked == [Tensor.sin]


# ---- devices and dtypes


def test_a_device_is_a_context_of_factories():
    with tg.device("meta"):
        made = [tg.zeros(2), tg.arange(3), tg.tensor([1.0]), tg.as_tensor([1.0]), tg.randn(2), nn.Linear(2, 2).weight]
        there = tg.zeros(2, device="cpu")
        assert tg.get_default_device() == tg.device("meta")
        with tg.device("cpu"):
            inner = tg.ones(1)
    assert [t.device.type for t in made] == ["meta"] * 6
    assert there.device.type == inner.device.type == tg.zeros(1).device.type == "cpu"
    assert overrides._get_current_function_mode_stack() == []


def test_what_follows_a_tensor_stays_on_its_device():
    t = tg.ones(2)
    with tg.device("meta"):
        assert tg.zeros_like(t).device.type == (t + 1).device.type == t.new_zeros(2).device.type == "cpu"


def test_the_default_device_is_set_for_good_and_taken_back():
    try:
        tg.set_default_device("meta")
        assert tg.zeros(2).device.type == tg.get_default_device().type == "meta"
        with tg.device("cpu"):
            assert tg.zeros(2).device.type == "cpu"
        tg.set_default_device("cpu")
        assert tg.zeros(2).device.type == "cpu"
    finally:
        tg.set_default_device(None)
    assert overrides._get_current_function_mode_stack() == []
    assert tg.get_default_device() == tg.device("cpu")
    with pytest.raises(RuntimeError, match="device"):
        tg.set_default_device("nowhere")


def test_a_default_dtype_for_a_block_of_one_thread():
    other = []
    with overrides.default_dtype(tg.float64):
        thread = threading.Thread(target=lambda: other.append(tg.zeros(1).dtype))
        thread.start()
        thread.join()
        assert tg.zeros(1).dtype == tg.tensor(0.1).dtype == tg.get_default_dtype() == tg.float64
        assert tg.tensor(1).dtype == tg.int64
        with overrides.default_dtype(tg.float16):
            assert tg.ones(1).dtype == tg.float16
        assert tg.tensor(0.1).item() == 0.1
    assert other == [tg.float32] and tg.zeros(1).dtype == tg.float32
    with pytest.raises(TypeError, match="floating"):
        overrides.default_dtype(tg.int64)
