"""Subclasses of Tensor: what keeps the class, what a handler sees, and wrapper types."""

import copy
import operator
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, nn, overrides
from tinygrad_ext.nn import functional as F


class Plain(Tensor):
    """A subclass that overrides nothing."""


class Log(Tensor):
    """Notes what it is asked, and does what Tensor does."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def plain(*shape, **kwargs):
    return tg.ones(*shape or (2, 3), **kwargs).as_subclass(Plain)


def seen(call, *shape):
    """What a Log tensor is asked by call(tensor)."""
    t = tg.ones(*shape or (2, 3)).as_subclass(Log)
    Log.seen.clear()
    call(t)
    return list(Log.seen)


# ---- what keeps the class


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s + s,
        lambda s: s + 1,
        lambda s: 1 - s,
        lambda s: tg.ones(2, 3) * s,
        lambda s: s * tg.ones(2, 3),
        lambda s: -s,
        lambda s: s > 0,
        lambda s: s == s,
        lambda s: s @ s.mT,
        lambda s: tg.exp(s),
        lambda s: s.sum(),
        lambda s: F.softmax(s, dim=0),
        lambda s: F.linear(tg.ones(1, 3), s),
        lambda s: nn.Linear(3, 2)(s),
        lambda s: tg.cat([tg.ones(2, 3), s]),
        lambda s: tg.stack([s, s]),
        lambda s: tg.where(tg.ones(2, 3) > 0, s, 0.0),
        lambda s: tg.zeros_like(s),
        lambda s: s.new_zeros(2),
        lambda s: tg.as_tensor(s),
        lambda s: s[0],
        lambda s: s[:, 1],
        lambda s: s[s > 0],
        lambda s: s.view(-1),
        lambda s: s.T,
        lambda s: s.real,
        lambda s: s.data,
        lambda s: s.detach(),
        lambda s: s.clone(),
        lambda s: s.to(tg.float64),
        lambda s: s.expand(4, 2, 3),
        lambda s: s.contiguous(),
        lambda s: s.requires_grad_(),
        lambda s: s.add_(1),
        lambda s: operator.iadd(s, 1),
        lambda s: s.zero_(),
        lambda s: next(iter(s)),
        lambda s: s.split(1)[1],
        lambda s: tg.unbind(s)[0],
        lambda s: s.max(dim=0).values,
        lambda s: tg.topk(s, 1)[1],
        lambda s: copy.copy(s),
        lambda s: copy.deepcopy(s),
        lambda s: pickle.loads(pickle.dumps(s)),
        lambda s: nn.init.normal_(s),
        lambda s: nn.Parameter(s),
    ],
)
def test_results_are_of_the_subclass(make):
    assert isinstance(make(plain()), Plain)


@pytest.mark.parametrize(
    "read, result",
    [
        (lambda s: s.shape, (2, 3)),
        (lambda s: s.size(1), 3),
        (lambda s: len(s), 2),
        (lambda s: s.dtype, tg.float32),
        (lambda s: s.sum().item(), 6),
        (lambda s: s.tolist(), [[1, 1, 1]] * 2),
        (lambda s: bool(s.sum()), True),
        (lambda s: float(s.sum()), 6.0),
        (lambda s: s.is_leaf, True),
        (lambda s: s.numpy().sum(), 6),
        (lambda s: 1.0 in s, True),
        (lambda s: tg.equal(s, s), True),
    ],
)
def test_what_is_no_tensor_stays_what_it_is(read, result):
    assert read(plain()) == result


def test_a_gradient_and_the_base_of_a_view_keep_their_class():
    x = tg.ones(2, requires_grad=True)
    s = x.as_subclass(Plain)
    (s * 3).sum().backward()
    assert type(x.grad) is Tensor and x.grad.tolist() == [3, 3]
    leaf = Tensor._make_subclass(Plain, tg.ones(2), True)
    (leaf * leaf).sum().backward()
    assert type(leaf.grad) is Tensor and leaf.grad.tolist() == [2, 2]
    base = tg.ones(2, 2)
    assert base[0].as_subclass(Plain)._base is base
    assert overrides.get_default_nowrap_functions() == {Tensor._base.__get__, Tensor.grad.__get__}


def test_inplace_ops_and_out_return_the_tensor_itself():
    s, out = plain(), plain()
    assert s.add_(1) is s and operator.imul(s, 2) is s
    assert tg.exp(tg.ones(2, 3), out=out) is out
    t = tg.zeros(2, 3)
    t[0] = s[0]
    assert t[0].tolist() == [4, 4, 4] and type(t) is Tensor


def test_views_of_a_subclass_share_memory_and_history():
    x = tg.ones(4, requires_grad=True)
    s = (x * 1).as_subclass(Plain)
    view = s[1:3]
    view.mul_(5)
    assert s.tolist() == [1, 5, 5, 1]
    s.sum().backward()
    assert x.grad.tolist() == [1, 5, 5, 1]


def test_gradients_flow_through_results_of_the_subclass():
    x = tg.ones(3, requires_grad=True)
    s = x.as_subclass(Plain)
    y = (s.exp() * s).sum()
    assert type(y) is Plain and y.grad_fn is not None
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), x)
    assert h.tolist() == pytest.approx([3 * tg.ones(1).exp().item()] * 3)


def test_copies_keep_attributes_but_results_do_not():
    s = plain()
    s.note = "kept"
    assert copy.deepcopy(s).note == pickle.loads(pickle.dumps(s)).note == "kept"
    assert not hasattr(s + 1, "note")


# ---- several types


def test_a_subclass_of_a_subclass_wins_and_siblings_are_refused():
    class Child(Plain):
        pass

    class Sibling(Tensor):
        pass

    child, sibling = tg.ones(2).as_subclass(Child), tg.ones(2).as_subclass(Sibling)
    for result in (plain(2) + child, child + plain(2), tg.add(plain(2), child)):
        assert type(result) is Child
    with pytest.raises(TypeError, match="Multiple dispatch failed.*Child.*Sibling"):
        tg.add(child, sibling)
    with pytest.raises(TypeError, match="unsupported operand"):
        child + sibling


def test_a_subclass_meets_parameters_as_plain_tensors():
    assert type(plain(2) + nn.Parameter(tg.ones(2))) is Plain
    assert type(nn.Parameter(tg.ones(2)) * plain(2)) is Plain


def test_operators_with_a_tensor_on_the_left_are_seen_from_the_left():
    assert seen(lambda s: tg.ones(2, 3) - s) == [Tensor.sub]
    assert seen(lambda s: 1 - s) == [Tensor.__rsub__]
    assert seen(lambda s: operator.iadd(tg.ones(2, 3), s)) == [Tensor.add_]


def test_an_operator_that_the_subclass_defines_is_its_own():
    class Mine(Plain):
        def __add__(self, other):
            return "mine"

        def __rsub__(self, other):
            return "reflected"

    m = tg.ones(2).as_subclass(Mine)
    assert m + 1 == "mine" and tg.ones(2) - m == "reflected"
    assert type(m * 2) is Mine and type(1 + m) is Mine
    Mine.__mul__ = lambda self, other: "later"
    assert m * 2 == "later"
    del Mine.__mul__
    assert type(m * 2) is Mine


def test_an_operand_of_a_strange_type_is_not_implemented():
    with pytest.raises(TypeError, match="unsupported operand"):
        plain() + "text"

    class Other:
        def __rmul__(self, other):
            return "other"

    assert plain() * Other() == "other"


# ---- what a handler sees


@pytest.mark.parametrize(
    "call, func",
    [
        (lambda s: s.shape, Tensor.shape.__get__),
        (lambda s: s.grad, Tensor.grad.__get__),
        (lambda s: setattr(s, "grad", None), Tensor.grad.__set__),
        (lambda s: delattr(s, "grad"), Tensor.grad.__delete__),
        (lambda s: s.T, Tensor.T.__get__),
        (lambda s: s.dim(), Tensor.dim),
        (lambda s: s.ndimension(), Tensor.dim),
        (lambda s: s.nelement(), Tensor.numel),
        (lambda s: len(s), Tensor.__len__),
        (lambda s: repr(s), Tensor.__repr__),
        (lambda s: str(s), Tensor.__repr__),
        (lambda s: s.__deepcopy__({}), Tensor.__deepcopy__),
        (lambda s: copy.copy(s), Tensor.__reduce_ex__),
        (lambda s: s.register_post_accumulate_grad_hook(print), Tensor.register_post_accumulate_grad_hook),
        (lambda s: s.__array__(), Tensor.__array__),
        (lambda s: s.__dlpack__(), Tensor.__dlpack__),
    ],
)
def test_one_call_is_seen_once(call, func):
    def run(s):
        try:
            call(s)
        except RuntimeError:
            assert func is Tensor.register_post_accumulate_grad_hook

    assert seen(run) == [func]


def test_iterating_is_seen_as_unbind():
    assert seen(lambda s: list(s))[:2] == [Tensor.dim, Tensor.unbind]


def test_inside_super_nothing_is_asked_again():
    assert seen(lambda s: F.normalize(s)) == [F.normalize]
    assert seen(lambda s: nn.Linear(3, 2)(s)) == [F.linear]


def test_a_function_runs_its_forward_with_overrides_on():
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert seen(Square.apply) == [Square.apply, Tensor.mul]


def test_redispatching_skips_one_call_and_no_more():
    class Once(Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(func)
            return overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    x = tg.ones(2).as_subclass(Once)
    assert scaled(x, x).tolist() == [2, 2]
    assert Once.seen[:2] == [scaled, Tensor.mul]
    assert type(x.exp()) is Tensor and x.shape == (2,) and Once.seen[-2:] == [Tensor.exp, Tensor.shape.__get__]


def test_backward_rules_of_ops_ask_nobody():
    x = Tensor._make_subclass(Log, tg.ones(3), True)
    y = (x * x).exp().sum()
    Log.seen.clear()
    y.backward()
    assert Log.seen == [Tensor.backward]
    loss = (x * x).exp().sum().as_subclass(Tensor)
    Log.seen.clear()
    loss.backward()
    assert Log.seen == []
    assert type(overrides.redispatch_function(Tensor.grad.__get__, (), (x,))) is Tensor


# ---- making instances


def test_a_subclass_with_new_and_init_of_its_own():
    class Named(Tensor):
        def __new__(cls, values, name, *args, **kwargs):
            return super().__new__(cls, values, *args, **kwargs)

        def __init__(self, values, name):
            self.label = name

    n = Named([1.0, 2.0], "speed")
    assert n.tolist() == [1, 2] and n.label == "speed" and isinstance(n * 2, Named)

    class Calls(Named):
        def __init__(self, values, name):
            super().__init__(values, name)
            Tensor.__init__(self)

    assert Calls([3.0], "x").tolist() == [3]


def test_a_subclass_made_of_another_tensor_by_new():
    class Tagged(Tensor):
        def __new__(cls, data, tag):
            made = Tensor._make_subclass(cls, data)
            made.tag = tag
            return made

    t = Tagged(tg.arange(3.0), "a")
    assert t.tolist() == [0, 1, 2] and t.tag == "a" and type(t + t) is Tagged
    assert copy.deepcopy(t).tag == "a"


def test_the_plain_constructor_of_a_subclass():
    assert Plain([1, 2]).tolist() == [1, 2] and type(Plain([1, 2])) is Plain
    assert Plain(2, 3).shape == (2, 3) and Plain().shape == (0,)


def test_a_wrapper_has_a_shape_and_no_data_and_its_handler_does_the_work():
    class Wrapper(Tensor):
        def __new__(cls, inner):
            made = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())
            made.inner = inner
            return made

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func in (Tensor.shape.__get__, Tensor.dtype.__get__):
                return super().__torch_function__(func, types, args, kwargs)
            result = func(*[a.inner if isinstance(a, Wrapper) else a for a in args], **(kwargs or {}))
            return Wrapper(result) if isinstance(result, Tensor) else result

    w = Wrapper(tg.arange(6.0).reshape(2, 3))
    assert w.shape == (2, 3) and w.dtype == tg.float32
    doubled = w + w
    assert type(doubled) is Wrapper and doubled.inner.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert (1 - w).sum().item() == -9
    with pytest.raises(RuntimeError, match="strides"):
        Tensor._make_wrapper_subclass(Wrapper, (2, 3), strides=(1,))
    with pytest.raises(TypeError, match="subclass of Tensor"):
        Tensor._make_wrapper_subclass(int, (2,))


def test_class_keywords_reach_the_mixin():
    class Mixin:
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.tag = tag

    class Both(Tensor, Mixin, tag="x"):
        pass

    assert Both.tag == "x"
    with pytest.raises(TypeError, match="no keyword arguments"):

        class Unknown(Tensor, tag="x"):
            pass
