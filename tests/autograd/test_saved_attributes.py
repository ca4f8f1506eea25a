"""What a node shows of what it saved, and hooks on one saved tensor."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import graph


class Product(tg.autograd.Function):
    """Saves both inputs and the output."""

    @staticmethod
    def forward(ctx, x, y):
        result = x * y
        ctx.save_for_backward(x, y, result, None)
        return result

    @staticmethod
    def backward(ctx, grad):
        x, y, result, nothing = ctx.saved_tensors
        assert nothing is None and result.shape == x.shape
        return grad * y, grad * x


def leaf(*values):
    return tg.tensor(values, requires_grad=True)


def test_saved_values_are_attributes_of_the_node():
    a, b = leaf(2.0), leaf(3.0)
    node = (a * b).grad_fn
    assert node._saved_self is a and node._saved_other is b
    assert {"_saved_self", "_raw_saved_other"} <= set(dir(node))
    y = a.exp()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    total = a.sum(0, keepdim=True).grad_fn
    assert total._saved_self_sym_sizes == (1,) and total._saved_keepdim is True
    with pytest.raises(AttributeError, match="no attribute '_saved_nothing'"):
        _ = node._saved_nothing
    (a * b).backward()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        _ = y.grad_fn._saved_result


def test_a_saved_output_of_integers_has_no_history():
    node = tg.rand(3, 4, requires_grad=True).max(1).values.grad_fn
    assert node._saved_result1.dtype is tg.int64
    assert not node._saved_result1.requires_grad
    assert tg.ones(2, requires_grad=True).exp().grad_fn._saved_result.requires_grad


@pytest.mark.parametrize("fn", [lambda a: a * a, lambda a: Product.apply(a, a), lambda a: a.exp()])
def test_hooks_on_one_saved_tensor(fn):
    a, seen = leaf(2.0), []
    y = fn(a)
    handle = {
        "MulBackward0": lambda n: n._raw_saved_self,
        "ProductBackward": lambda n: n._raw_saved_tensors[0],
        "ExpBackward0": lambda n: n._raw_saved_result,
    }[y.grad_fn.name()](y.grad_fn)
    handle.register_hooks(lambda t: seen.append("pack") or t.tolist(), lambda v: seen.append("unpack") or tg.tensor(v))
    assert seen == ["pack"]
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        handle.register_hooks(lambda t: t, lambda t: t)
    y.backward()
    assert seen == ["pack", "unpack"] and a.grad.item() == pytest.approx({4.0: 4.0}.get(y.item(), y.item()))
    with pytest.raises(RuntimeError, match="after it has been freed"):
        handle.register_hooks(lambda t: t, lambda t: t)


def test_a_pack_hook_that_disturbs_the_node_is_survived():
    x = tg.ones(2, requires_grad=True)
    y = x.exp()
    total, handle = y.sum(), y.grad_fn._raw_saved_result
    with pytest.raises(RuntimeError, match="freed, or given other hooks, while pack_hook ran"):
        handle.register_hooks(lambda t: total.backward() or t, lambda t: t)
    with pytest.raises(RuntimeError, match="belongs to no node"):
        type(handle)().register_hooks(lambda t: t, lambda t: t)

    def forward(ctx, x):
        forward.ctx = ctx
        ctx.save_for_backward(x, x)
        return x * 2

    made = type("Made", (tg.autograd.Function,), {"forward": staticmethod(forward)})
    with graph.saved_tensors_hooks(lambda t: forward.ctx.save_for_backward() or t, lambda t: t):
        y = made.apply(x)
    assert len(y.grad_fn.saved_tensors) == 2


def test_hooks_need_a_saved_tensor_and_callables():
    a = leaf(2.0)
    node = (a * tg.ones(1)).grad_fn
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="callable"):
        node._raw_saved_other.register_hooks(3, lambda t: t)
