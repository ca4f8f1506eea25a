"""`torch._ops.HigherOrderOperator`: which implementation a call goes to."""

import pytest

import tinygrad_ext as tg


@pytest.fixture
def parts(as_torch):
    from torch._ops import HigherOrderOperator
    from torch.utils._python_dispatch import TorchDispatchMode

    class Applied(HigherOrderOperator):
        def __init__(self, name="applied"):
            super().__init__(name)

        def __call__(self, function, *args):
            return super().__call__(function, *args)

    return Applied, as_torch._C.DispatchKey, TorchDispatchMode


def told(word):
    return lambda function, *args: (word, function(*args))


def test_names(parts):
    op = parts[0]("scanned")
    assert op.name() == op.__name__ == str(op) == "scanned"
    assert op.namespace == "higher_order" and op.__module__ == "torch.ops.higher_order" and not op.cacheable()


def test_autograd_comes_before_what_computes(parts):
    Applied, key, _ = parts
    op, plain, leaf = Applied(), tg.ones(2), tg.ones(2, requires_grad=True)
    op.py_impl(key.CompositeExplicitAutograd)(told("below"))
    with pytest.raises(NotImplementedError, match="Operator applied at dispatch key DispatchKey.AutogradCPU"):
        op(tg.sin, plain)
    assert op(float, "1")[0] == "below"  # no tensor asks for autograd
    op.py_impl(key.Autograd)(told("autograd"))
    for x in (plain, leaf):
        word, found = op(tg.sin, x)
        assert word == "autograd" and found.equal(x.sin())
    op(tg.sin, leaf)[1].sum().backward()
    assert leaf.grad.equal(tg.ones(2).cos())
    op.fallthrough(key.Autograd)
    assert op(tg.sin, leaf)[0] == "below"


def test_an_implementation_of_autograd_alone(parts):
    Applied, key, _ = parts
    op, leaf = Applied(), tg.ones(2, requires_grad=True)
    op.py_impl(key.CompositeExplicitAutograd)(told("below"))
    assert op.py_autograd_impl(told("autograd"))(tg.sin, leaf)[0] == "autograd"
    assert op(tg.sin, leaf)[0] == "autograd" and op(tg.sin, tg.ones(2))[0] == "below"
    with tg.no_grad():
        assert op(tg.sin, leaf)[0] == "below"
    assert op(lambda x: op(tg.sin, leaf), tg.ones(2))[1][0] == "below"  # nothing above is asked again


def test_devices(parts):
    Applied, key, _ = parts
    op = Applied()
    op.py_impl(key.AutogradCPU)(told("cpu"))
    assert op(tg.sin, tg.ones(2))[0] == "cpu"
    with pytest.raises(NotImplementedError, match="DispatchKey.AutogradMeta"):
        op(tg.sin, tg.ones(2, device="meta"))
    op.fallthrough(key.AutogradMeta)
    op.py_impl(key.Meta)(told("meta"))
    assert op(tg.sin, tg.ones(2, device="meta"))[0] == "meta"
    assert op.has_kernel_for_dispatch_key(key.Meta) and not op.has_kernel_for_dispatch_key(key.CPU)


def test_modes_and_classes_come_first(parts):
    Applied, key, Mode = parts

    class Plain(Mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Taking(Plain):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return str(func)

    class Own(tg.Tensor):
        @staticmethod
        def __new__(cls, x):
            return tg.Tensor._make_subclass(cls, x)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    op = Applied()
    op.py_impl(key.CompositeImplicitAutograd)(told("implicit"))
    with (
        Plain(),
        pytest.raises(NotImplementedError, match="no rule .* HigherOrderOperator applied and mode"),
    ):
        op(tg.sin, tg.ones(2))
    with Taking():
        assert op(tg.sin, tg.ones(2)) == "applied"
    op.py_impl(Plain)(lambda mode, function, *args: (type(mode).__name__, function(*args)))
    with Plain():
        assert op(tg.sin, tg.ones(2))[0] == "Plain"
    with pytest.raises(NotImplementedError, match="no rule registered for HOP applied and subclass"):
        op(tg.sin, Own(tg.ones(2)))
    op.py_impl(Own)(lambda function, *args: type(args[0]).__name__)
    assert op(tg.sin, Own(tg.ones(2))) == "Own" and op(tg.sin, tg.ones(2))[0] == "implicit"
    op.py_impl(Taking)(lambda mode, *args: NotImplemented)
    x = tg.ones(2)
    with Taking():
        assert op(tg.sin, x)[0] == "implicit"


def test_transforms_and_captures_see_what_is_called(parts):
    Applied, key, _ = parts
    op = Applied()
    op.py_impl(key.Autograd)(lambda function, *args: function(*args))
    x = tg.arange(6.0).reshape(3, 2)
    assert tg.vmap(lambda row: op(tg.cumsum, row, 0))(x).equal(x.cumsum(1))
    assert tg.func.grad(lambda x: op(tg.sin, x).sum())(x).equal(x.cos())
    assert tg.jit.trace(lambda x: op(tg.sin, x), (x,))(x * 2).equal((x * 2).sin())


def test_refusals(parts):
    Applied, key, Mode = parts
    from torch._ops import HigherOrderOperator

    with pytest.raises(TypeError, match="abstract"):
        HigherOrderOperator("bare")
    op = Applied()
    op.py_impl(key.CPU)(told("cpu"))
    op.py_impl(Mode)(told("mode"))
    with pytest.raises(RuntimeError, match="Trying to override a python impl for DispatchKey.CPU on operator applied"):
        op.py_impl(key.CPU)(told("other"))
    with pytest.raises(AssertionError, match="already registered in python_key_table"):
        op.py_impl(Mode)(told("other"))
    with pytest.raises(AssertionError, match="register a mode for the DispatchKey.Python key"):
        op.py_impl(key.Python)(told("other"))
