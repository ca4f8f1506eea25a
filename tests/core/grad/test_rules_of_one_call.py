"""Rules that are a text: a call of one op, which goes to it without being bound, and a product with a number."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.func import vmap
from tinygrad_ext.registry import compiler, op_registrar


def grads(call, *tensors):
    leaves = [t.clone().requires_grad_() for t in tensors]
    return tg.autograd.grad(call(*leaves).sum(), leaves)


def called(name):
    """The ops that an op's rules go straight to, by target."""
    o = ops[name]
    rules, _ = compiler._rules(o.record, o.schema, op_registrar.find_function)
    return {tuple(targets): told.name for targets, _, _, told, _ in rules if told is not None}


def test_what_the_parameters_are_decides_whether_a_call_is_bound():
    assert called("aten::mul.Tensor") == {(0,): "aten::mul_conj", (1,): "aten::mul_conj"}
    assert called("aten::sum") == {(0,): "aten::expand"}
    assert called("aten::sum.dim_IntList") == {}  # a function of several calls


@pytest.mark.parametrize("alpha", [1, 1.0, 2, -0.5, 2**40])
def test_the_gradient_passes_a_factor_of_one_and_is_multiplied_by_others(alpha):
    a, b = grads(lambda x, y: tg.add(x, y, alpha=alpha), tg.ones(2), tg.ones(2))
    assert a.tolist() == [1, 1]
    assert b.tolist() == pytest.approx([alpha] * 2, rel=1e-6)


def test_a_factor_may_be_complex_or_a_tensor():
    x, y = (tg.ones(2, dtype=tg.complex64).requires_grad_() for _ in range(2))
    got = tg.autograd.grad(tg.add(x, y, alpha=2 + 1j), y, tg.ones(2, dtype=tg.complex64))[0]
    assert got.tolist() == [2 - 1j] * 2
    _, got = grads(lambda x, y: tg.add(x, y, alpha=tg.tensor(1)), tg.ones(2), tg.ones(2))
    assert got.tolist() == [1, 1]


def test_a_node_to_which_no_gradient_came_passes_none_on():
    x = tg.ones(2, requires_grad=True)
    written = x * 1
    written[:1] += x[:1]
    for node in (tg.add(x, x).grad_fn, (x * x).grad_fn, x.sum().grad_fn, x.exp().grad_fn, written.grad_fn):
        got = node(None)
        assert got is None or got == (None,) * len(node.next_functions)


def test_an_operand_that_was_a_number_goes_straight_too():
    (got,) = grads(lambda x: x * 3, tg.tensor([1.0, 2.0]))
    assert got.tolist() == [3, 3]
    (got,) = grads(lambda x: 3 * x, tg.tensor([1.0, 2.0]))
    assert got.tolist() == [3, 3]


def test_gradients_of_gradients_go_the_same_way():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    (first,) = tg.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad(first.sum(), x)
    assert second.tolist() == [6, 12]


def test_what_a_transform_carries_goes_through_the_rules():
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])

    def slope(row):
        return tg.func.grad(lambda t: (t * t + t).sum())(row)

    assert vmap(slope)(x).tolist() == (2 * x + 1).tolist()


def test_a_subclass_gets_through_a_rule_unasked():
    seen = []

    class Sub(tg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = (x * tg.tensor([3.0, 4.0]).as_subclass(Sub)).as_subclass(tg.Tensor)
    seen.clear()
    y.sum().backward()
    assert not seen
    assert x.grad.as_subclass(tg.Tensor).tolist() == [3, 4]


def test_saved_tensors_hooks_see_a_rule_of_one_call():
    unpacked = []
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(1) or t):
        y = x * tg.tensor([3.0, 4.0])
    y.sum().backward()
    assert unpacked
    assert x.grad.tolist() == [3, 4]


def test_sizes_are_read_as_a_tuple_of_ints_is():
    t = tg.zeros(2, 3)
    assert t.sum().expand(t.shape).shape == t.shape
    assert tg.zeros(6).view(tg.Size([2, 3])).shape == (2, 3)
    assert tg.zeros(2, 1).expand(tg.Size((-1, 4))).shape == (2, 4)
    with pytest.raises(RuntimeError, match="must match the existing size"):
        tg.zeros(3).expand(tg.Size([2, 4]))
    with pytest.raises((RuntimeError, OverflowError)):
        tg.zeros(1).expand((2**70,))
