"""`__torch_dispatch__`: tensors and modes that carry out the operations below autograd."""

import copy

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, overrides
from tinygrad_ext.overrides import dispatched
from tinygrad_ext.overrides.dispatched import TorchDispatchMode

SEEN = []


def unwrapped(o):
    if isinstance(o, (list, tuple)):
        return type(o)(map(unwrapped, o)) if type(o) in (list, tuple) else [unwrapped(i) for i in o]
    return o.inner if isinstance(o, Wrapper) else o


def wrapped(o):
    if isinstance(o, (list, tuple)):
        return type(o)(map(wrapped, o)) if type(o) in (list, tuple) else type(o)([wrapped(i) for i in o])
    return Wrapper(o) if isinstance(o, Tensor) else o


class Wrapper(Tensor):
    """A tensor without memory around one that has some."""

    def __new__(cls, inner, requires_grad=False):
        made = Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, requires_grad=requires_grad
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        SEEN.append(str(func))
        assert all(issubclass(t, Wrapper) for t in types)
        kwargs = {k: unwrapped(v) for k, v in (kwargs or {}).items()}
        return wrapped(func(*unwrapped(list(args)), **kwargs))


class Seen(TorchDispatchMode):
    def __init__(self):
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def none_seen():
    SEEN.clear()


@pytest.fixture
def numbers():
    return np.arange(6, dtype=np.float32).reshape(2, 3) / 4 + 0.5


def wrap(numbers, requires_grad=False):
    return Wrapper(tg.tensor(numbers), requires_grad)


CALLS = {
    "add": (lambda t: t + 1, ["aten.add.Tensor"]),
    "number first": (lambda t: 2 * t, ["aten.mul.Tensor"]),
    "plain operand": (lambda t: tg.ones(2, 3) - t, ["aten.sub.Tensor"]),
    "matmul": (lambda t: t @ tg.ones(3, 2), ["aten.mm.default"]),
    "matmul of rows": (lambda t: t[None] @ tg.ones(3, 2), ["aten.unsqueeze.default"]),
    "matmul of batches": (lambda t: t[None] @ tg.ones(4, 3, 2), ["aten.unsqueeze.default"]),
    "linear": (lambda t: tg.nn.functional.linear(t, tg.ones(4, 3), tg.ones(4)), ["aten.addmm.default"]),
    "linear without bias": (lambda t: tg.nn.functional.linear(t, tg.ones(4, 3)), ["aten.mm.default"]),
    "select": (lambda t: t[1], ["aten.select.int"]),
    "slice": (lambda t: t[:, 1:], ["aten.slice.Tensor"]),
    "whole slice": (lambda t: t[:], ["aten.slice.Tensor"]),
    "all": (lambda t: t[...], ["aten.alias.default"]),
    "steps": (lambda t: t[0, None, ..., ::2], ["aten.select.int", "aten.unsqueeze.default", "aten.slice.Tensor"]),
    "index": (lambda t: t[:, [0, 2]], ["aten.index.Tensor"]),
    "mask": (lambda t: t[t > 1], ["aten.gt.Tensor", "aten.index.Tensor"]),
    "sum": (lambda t: t.sum(1), ["aten.sum.dim_IntList"]),
    "reshape": (lambda t: t.reshape(3, -1), ["aten.view.default"]),
    "reshape with a copy": (lambda t: t.T.reshape(-1), ["aten.t.default", "aten.clone.default", "aten.view.default"]),
    "flatten": (lambda t: t.flatten(), ["aten.view.default"]),
    "unflatten": (lambda t: t.unflatten(1, (3, 1)), ["aten.view.default"]),
    "movedim": (lambda t: t.movedim(0, 1), ["aten.permute.default"]),
    "narrow": (lambda t: t.narrow(1, 1, 2), ["aten.slice.Tensor"]),
    "chunk": (lambda t: t.chunk(2, 1)[1], ["aten.split.Tensor"]),
    "split": (lambda t: t.split([1, 2], 1)[1], ["aten.split_with_sizes.default"]),
    "expand": (lambda t: t[:1].expand_as(t), ["aten.slice.Tensor", "aten.expand.default"]),
    "contiguous": (lambda t: t.contiguous(), []),
    "contiguous copy": (lambda t: t.T.contiguous(), ["aten.t.default", "aten.clone.default"]),
    "cat": (lambda t: tg.cat([t, t]), ["aten.cat.default"]),
    "sort": (lambda t: t.sort(descending=True).values, ["aten.sort.default"]),
    "max": (lambda t: t.max(1)[0], ["aten.max.dim"]),
    "to": (lambda t: t.to(tg.float64), ["aten._to_copy.default"]),
    "in place": (lambda t: t.clone().mul_(3), ["aten.clone.default", "aten.mul_.Tensor"]),
    "set": (lambda t: [c := t.clone(), c.__setitem__(0, 1.0)][0], ["aten.clone.default", "aten.select.int"]),
    "layer norm": (lambda t: tg.nn.functional.layer_norm(t, (3,)), None),
    "cross entropy": (lambda t: tg.nn.functional.cross_entropy(t, tg.tensor([0, 1])), None),
    "cov": (lambda t: tg.cov(t), None),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_operation_is_the_wrappers_own(name, numbers):
    call, expected = CALLS[name]
    result = call(wrap(numbers))
    if expected is not None:
        assert SEEN[: len(expected)] == expected
    assert type(result) is Wrapper
    plain = call(tg.tensor(numbers))
    assert result.shape == plain.shape and result.dtype == plain.dtype
    assert result.inner.shape == plain.shape
    np.testing.assert_array_equal(result.inner.numpy(), plain.numpy())


@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("to", "mask", "set", "in place", "all")])
def test_gradients_go_through_what_the_wrapper_computes(name, numbers):
    call = CALLS[name][0]
    w, plain = wrap(numbers, True), tg.tensor(numbers, requires_grad=True)
    for t in (w, plain):
        result = call(t)
        assert result.grad_fn is not None or result is t
        (result * result).sum().backward()
    assert type(w.grad) is Wrapper and w.is_leaf
    np.testing.assert_allclose(w.grad.inner.numpy(), plain.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_add_up_and_are_differentiated_again(numbers):
    w, plain = wrap(numbers, True), tg.tensor(numbers, requires_grad=True)
    for t in (w, plain):
        t.exp().sum().backward()
        (t.exp() * t).sum().backward()
    np.testing.assert_array_equal(w.grad.inner.numpy(), plain.grad.numpy())
    seconds = []
    for t in (w, plain):
        (first,) = tg.autograd.grad((t**3).sum(), t, create_graph=True)
        (second,) = tg.autograd.grad(first.sum(), t)
        seconds.append(second)
    np.testing.assert_array_equal(seconds[0].inner.numpy(), seconds[1].numpy())


def test_a_write_to_a_wrapper_is_part_of_its_history(numbers):
    results = []
    for t in (wrap(numbers, True), tg.tensor(numbers, requires_grad=True)):
        x = t * 1
        x.mul_(t)
        results.append(tg.autograd.grad(x.sum(), t)[0])
    np.testing.assert_array_equal(results[0].inner.numpy(), results[1].numpy())


def test_optimizers_step_wrappers(numbers):
    w, plain = wrap(numbers, True), tg.tensor(numbers, requires_grad=True)
    for t in (w, plain):
        for kind in (tg.optim.SGD, tg.optim.Adam):
            optimizer = kind([t], lr=0.1)
            optimizer.zero_grad()
            (t * t).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(w.inner.numpy(), plain.detach().numpy(), rtol=1e-6)


def test_numbers_of_a_wrapper(numbers):
    w = wrap(numbers).sum()
    assert w.item() == float(w) == numbers.sum() and bool(w) and int(w) == int(numbers.sum())
    assert SEEN.count("aten._local_scalar_dense.default") == 4
    with pytest.raises(RuntimeError, match="wrap other tensors"):
        wrap(numbers).numpy()


def test_a_wrapper_shows_the_device_of_what_it_wraps(numbers):
    w = wrap(numbers)
    assert w.device == tg.device("cpu") and w.is_cpu and not w.is_meta
    made = Tensor._make_wrapper_subclass(Wrapper, (2,), device="meta")
    assert made.is_meta


def test_arguments_come_as_the_schema_has_them(numbers):
    got = []

    class Asked(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            got.append((str(func), args[1:], kwargs))
            return super().__torch_dispatch__(func, types, args, kwargs)

    w = Asked(tg.tensor(numbers))
    w.sum(1)
    w.sum((0, 1), True)
    w.add(1, alpha=2)
    w.add(1)
    w.expand(4, 2, 3)
    tg.add(w, 1, out=tg.empty(2, 3))
    assert [g for g in got[:5]] == [
        ("aten.sum.dim_IntList", ([1],), {}),
        ("aten.sum.dim_IntList", ([0, 1], True), {}),
        ("aten.add.Tensor", (1,), {"alpha": 2}),
        ("aten.add.Tensor", (1,), {}),
        ("aten.expand.default", ([4, 2, 3],), {}),
    ]
    name, args, kwargs = got[5]
    assert name == "aten.add.out" and args == (1,) and list(kwargs) == ["out"]


def test_forms_that_write_to_a_target_are_functions_too():
    out = tg.empty(2)
    assert tg.ops.aten.add.out(tg.ones(2), 1, out=out) is out and out.tolist() == [2, 2]
    assert str(tg.ops.aten.add.out) == "aten.add.out" and tg.ops.aten.add.out is tg.ops.aten.add.out
    with pytest.raises(AttributeError, match="no overload"):
        tg.ops.aten.detach.out


def test_subclasses_are_asked_before_their_superclasses(numbers):
    class Above(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return types

    class Declines(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    a, b, c = wrap(numbers), Above(tg.tensor(numbers)), Declines(tg.tensor(numbers))
    assert tg.add(a, b) == (Above, Wrapper)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'aten.add.Tensor'.*Declines"):
        tg.add(c, 1)


def test_a_class_with_a_handler_of_operations_has_none_of_calls():
    class Own(Wrapper):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "call"

    assert Wrapper.__torch_function__ is overrides._disabled_torch_function_impl
    assert Own(tg.ones(2)) + 1 == "call"
    assert not overrides.has_torch_function((Wrapper(tg.ones(2)),))


def test_a_tensor_with_memory_may_have_a_handler_and_leave_the_rest_to_its_class():
    class Logged(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            SEEN.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    t = tg.arange(3.0).as_subclass(Logged)
    assert (t + 1).tolist() == [1, 2, 3] and type(t + 1) is Tensor
    assert SEEN[0] == "aten.add.Tensor"
    with dispatched._DisableTorchDispatch():
        SEEN.clear()
        assert (t * 2).tolist() == [0, 2, 4] and not SEEN


def test_a_mode_sees_operations_without_tensors_below_autograd():
    x = tg.ones(2, requires_grad=True)
    with Seen() as mode:
        y = (tg.zeros(2) + x.exp()).sum()
        assert dispatched._get_current_dispatch_mode() is mode
        y.backward()
    assert mode.calls[:4] == ["aten.zeros.default", "aten.exp.default", "aten.add.Tensor", "aten.sum.default"]
    assert "aten.mul.Tensor" in mode.calls
    np.testing.assert_allclose(x.grad.numpy(), np.exp(np.ones(2, np.float32)), rtol=1e-6)
    calls = len(mode.calls)
    tg.ones(2)
    assert len(mode.calls) == calls and dispatched._get_current_dispatch_mode() is None


def test_modes_are_asked_innermost_first_and_before_types(numbers):
    order = []

    class Named(TorchDispatchMode):
        def __init__(self, name):
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer"), Named("inner"):
        assert type(wrap(numbers) + 1) is Wrapper
        assert [m.name for m in dispatched._get_current_dispatch_mode_stack()] == ["outer", "inner"]
        assert order[-2:] == ["inner", "outer"] and SEEN == ["aten.add.Tensor"]
        with dispatched._disable_current_modes() as off:
            count = len(order)
            tg.ones(2)
            assert len(order) == count and [m.name for m in off] == ["outer", "inner"]
        with dispatched._pop_mode_temporarily() as inner:
            assert inner.name == "inner"
            tg.ones(2)
        assert order[count:] == ["outer"]


def test_a_mode_answers_in_the_place_of_the_kernel():
    class Twice(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if str(func) == "aten.exp.default" else result

    x = tg.zeros(2, requires_grad=True)
    with Twice():
        y = x.exp()
    assert y.tolist() == [2, 2] and tg.autograd.grad(y.sum(), x)[0].tolist() == [2, 2]


def test_a_handler_that_raises_leaves_nothing_behind(numbers):
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("none")

    x = tg.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="none"), Fails():
        x.exp()
    assert x.exp().grad_fn is not None and tg.is_grad_enabled()
    assert overrides.active_levels() == []


def test_transforms_lie_over_wrappers_and_modes():
    with Seen() as mode:
        assert tg.func.vmap(lambda t: t + 1)(tg.ones(2, 3)).shape == (2, 3)
        assert tg.func.grad(lambda t: (t * t).sum())(tg.ones(2)).tolist() == [2, 2]
    assert "aten.add.Tensor" in mode.calls and "aten.mul.Tensor" in mode.calls


def test_a_wrapper_is_copied_with_what_it_wraps(numbers):
    w = wrap(numbers, True)
    twin = copy.deepcopy(w)
    assert type(twin) is Wrapper and twin.requires_grad and twin.inner is not w.inner
    np.testing.assert_array_equal(twin.inner.numpy(), numbers)


def test_what_a_handler_returns_for_a_write_is_what_was_written_to(numbers):
    add, add_ = tg.ops.aten.add.Tensor, tg.ops.aten.add_.Tensor
    w, other = wrap(numbers), wrap(numbers)
    assert dispatched.return_and_correct_aliasing(add_, (w, 1), {}, other) is w
    assert dispatched.return_and_correct_aliasing(add, (w, 1), {}, other) is other
    assert dispatched.return_and_correct_aliasing(add, (w, 1), {"out": w}, other) is w


def test_wrappers_that_say_what_they_wrap():
    class Flat(Wrapper):
        def __tensor_flatten__(self):
            return ["inner"], None

        @staticmethod
        def __tensor_unflatten__(inner, context, size, stride):
            return Flat(inner["inner"])

    flat = Flat(tg.ones(2))
    assert dispatched.is_traceable_wrapper_subclass(flat) and dispatched.is_traceable_wrapper_subclass_type(Flat)
    assert not dispatched.is_traceable_wrapper_subclass(wrap(np.ones(2, np.float32)))
    assert not dispatched.is_traceable_wrapper_subclass(tg.ones(2))
    assert dispatched.transform_subclass(flat, lambda name, t: t + 1).inner.tolist() == [2, 2]


def test_private_names_of_pytorch(as_torch):
    from torch import _tensor_str
    from torch.utils import _python_dispatch

    assert _python_dispatch.TorchDispatchMode is TorchDispatchMode
    assert _tensor_str._tensor_str(tg.ones(2), 0) == "[1., 1.]"
    assert _tensor_str._str(tg.ones(2), tensor_contents="..") == "tensor(..)"
    assert _tensor_str._add_suffixes("t([1.]", ["a=1", "b=2"], 2, False) == "t([1.], a=1, b=2)"
    assert _tensor_str._add_suffixes("t([1.]", ["a=1", "b=2"], 2, True) == "t([1.],\n  a=1, b=2)"
    assert as_torch._C._get_default_device() == "cpu"
    with as_torch._C._DisableTorchDispatch():
        assert (wrap(np.ones(2, np.float32)) + 1).device == tg.device("meta")
