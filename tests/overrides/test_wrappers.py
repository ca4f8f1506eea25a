"""Tensors that wrap others and carry their operations out by `__torch_dispatch__`, beside the plain ones."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func
from tinygrad_ext.autograd import functional, gradcheck, gradgradcheck
from tinygrad_ext.utils._pytree import tree_map


class _Wrapper(tg.Tensor):
    """What is wrapped stands in a slot or in an attribute, as the class says."""

    __slots__ = ()

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = tg.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )
        made.inner = inner
        return made

    def __repr__(self):
        return super().__repr__(tensor_contents=f"around {self.inner}")

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        def inner(x):
            return x.inner if isinstance(x, cls) else x

        def wrapped(x):
            return cls(x) if isinstance(x, tg.Tensor) else x

        return tree_map(wrapped, op(*tree_map(inner, args), **tree_map(inner, kwargs or {})))


class InSlot(_Wrapper):
    __slots__ = ("inner",)


class InDict(_Wrapper):
    pass


def plain(x):
    return tree_map(lambda t: t.inner if isinstance(t, _Wrapper) else t, x)


def scalar(x):
    return (x * x).sum().exp() + x.exp().tanh().sum() + x.narrow(0, 0, 2).double().prod().float()


def vector(x):
    return x.sin() * x + x.double().softmax(0).float()


WAYS = {
    "grad": lambda x: func.grad(scalar)(x),
    "jacrev": lambda x: func.jacrev(vector)(x),
    "jacfwd": lambda x: func.jacfwd(vector)(x),
    "hessian": lambda x: func.hessian(scalar)(x),
    "vmap": lambda x: func.vmap(lambda v: v.exp() + x)(x.unsqueeze(0) * x.unsqueeze(1)),
    "vmap of grad": lambda x: func.vmap(func.grad(scalar))(x.unsqueeze(0) * x.unsqueeze(1)),
    "jacobian": lambda x: functional.jacobian(vector, x),
    "jacobian of rows": lambda x: functional.jacobian(vector, x, vectorize=True),
    "jacobian forward": lambda x: functional.jacobian(vector, x, vectorize=True, strategy="forward-mode"),
    "hessian of rows": lambda x: functional.hessian(scalar, x, vectorize=True),
    "hvp": lambda x: functional.hvp(scalar, x, x)[1],
    "backward": lambda x: backward(x),
}


def backward(x):
    x = x.detach().requires_grad_()
    scalar(x).backward()
    return x.grad


@pytest.mark.parametrize("kind", [InSlot, InDict])
@pytest.mark.parametrize("way", WAYS)
def test_transforms_see_what_is_wrapped(way, kind):
    x = tg.tensor([0.3, -0.7, 1.2])
    found = WAYS[way](kind(x))
    assert type(found) is kind
    tg.testing.assert_close(found.inner, WAYS[way](x))


@pytest.mark.parametrize("kind", [InSlot, InDict])
def test_gradients_are_checked_through_it(kind):
    x = kind(tg.tensor([0.3, -0.7, 1.2], dtype=tg.float64), requires_grad=True)
    assert gradcheck(lambda x: x.exp() * x, (x,))
    assert gradcheck(lambda x: x.exp() * x, (x,), fast_mode=True)
    assert gradgradcheck(lambda x: x.exp() * x, (x,))
    assert plain(x.detach()).tolist() == [0.3, -0.7, 1.2]


@pytest.mark.parametrize("kind", [InSlot, InDict])
def test_copies_have_what_is_wrapped(kind):
    x = kind(tg.tensor([1.0, 2.0]))
    copied = copy.deepcopy(x)
    assert type(copied) is kind and copied.inner is not x.inner and copied.inner.tolist() == [1.0, 2.0]
    assert repr(x) == f"{kind.__name__}(around tensor([1., 2.]))"


class Marked(tg.Tensor):
    __slots__ = ("mark", "unset")


def test_slots_are_copied_and_pickled():
    x = tg.tensor([1.0, 2.0]).as_subclass(Marked)
    x.mark, x.more = ["a"], "b"
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is Marked and made.tolist() == [1.0, 2.0]
        assert made.mark == ["a"] and made.mark is not x.mark and made.more == "b" and not hasattr(made, "unset")


def test_numpy_says_that_something_is_wrapped():
    with pytest.raises(RuntimeError, match=r"numpy\(\) is not supported for tensor subclasses that wrap"):
        InDict(tg.ones(2)).numpy()


def test_contents_are_shown_as_given():
    x = tg.ones(2, requires_grad=True)
    assert x.__repr__(tensor_contents="two ones") == "tensor(two ones, requires_grad=True)"
    with pytest.raises(TypeError, match="__repr__"):
        x.__repr__("two ones")
