"""backward() and grad(): values, arguments, refusals."""

import math
from collections import OrderedDict

import pytest

import tinygrad_ext as tg


def leaf(*values):
    return tg.tensor(list(values) if len(values) != 1 else values[0], dtype=tg.float64, requires_grad=True)


def test_gradients_add_up_over_uses_and_passes():
    x = leaf(2.0)
    (x * x + x).backward()
    assert x.grad.item() == 5.0
    (3 * x).backward()
    assert x.grad.item() == 8.0


def test_grad_returns_and_leaves_dot_grad_alone():
    x, y = leaf(2.0), leaf(5.0)
    gx, gy = tg.autograd.grad(x * y + y, (x, y))
    assert (gx.item(), gy.item()) == (5.0, 3.0)
    assert x.grad is None and y.grad is None


def test_higher_orders_come_from_create_graph():
    x = leaf(1.3)
    value, wanted = x.sin(), [math.cos(1.3), -math.sin(1.3), -math.cos(1.3), math.sin(1.3)]
    for w in wanted:
        (value,) = tg.autograd.grad(value, x, create_graph=True)
        assert value.item() == pytest.approx(w)


def test_broadcast_gradients_are_summed_to_the_operand():
    a, b = tg.ones(3, 1, requires_grad=True), tg.ones(4, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[4.0]] * 3
    assert b.grad.tolist() == [3.0] * 4


def test_inputs_restricts_what_backward_fills():
    x, y = leaf(2.0), leaf(3.0)
    (x * y).backward(inputs=[x])
    assert x.grad.item() == 3.0 and y.grad is None


def test_inputs_may_be_intermediate():
    x = leaf(2.0)
    y = x * x
    (g,) = tg.autograd.grad(y * 3, y)
    assert g.item() == 3.0
    y = x * x
    (y * 3).backward(inputs=[y])
    assert y.grad.item() == 3.0 and x.grad is None


def test_dict_inputs_give_a_dict():
    x, y = leaf(2.0), leaf(3.0)
    got = tg.autograd.grad(x * y, {"x": x, "y": y})
    assert {k: v.item() for k, v in got.items()} == {"x": 3.0, "y": 2.0}


def test_unused_input_needs_permission():
    x, y = leaf(2.0), leaf(3.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        tg.autograd.grad(x * x, (x, y))
    assert tg.autograd.grad(x * x, (x, y), allow_unused=True)[1] is None
    assert tg.autograd.grad(x * x, (x, y), materialize_grads=True)[1].item() == 0.0


@pytest.mark.parametrize(
    "call, error, fragment",
    [
        (lambda x: (x * x).backward(), RuntimeError, "implicitly created only for scalar outputs"),
        (lambda x: x.detach().sum().backward(), RuntimeError, "does not require grad and does not have a grad_fn"),
        (lambda x: (x * x).backward(tg.ones(3, dtype=tg.float64)), RuntimeError, "Mismatch in shape"),
        (lambda x: (x * x).backward(1.0), TypeError, "grad_tensors must be"),
        (lambda x: tg.autograd.grad(x.sum(), []), RuntimeError, "cannot be empty"),
        (lambda x: tg.autograd.backward([x.sum()], inputs=[]), RuntimeError, "cannot be empty"),
        (lambda x: tg.autograd.grad(x.sum(), x.detach()), RuntimeError, "does not require grad"),
        (lambda x: tg.autograd.grad(x.sum(), x, is_grads_batched=True), RuntimeError, "for each output"),
        (lambda x: tg.autograd.grad(x, x, tg.ones(3), is_grads_batched=True), RuntimeError, "remaining dimensions"),
        (lambda x: tg.autograd.backward("x"), TypeError, "str"),
        (
            lambda x: tg.autograd.grad(x.sum(), [()]),
            RuntimeError,
            "all inputs have to be Tensors or GradientEdges, but got tuple",
        ),
        (
            lambda x: tg.autograd.grad(x.sum(), [[]]),
            RuntimeError,
            "all inputs have to be Tensors or GradientEdges, but got list",
        ),
        (
            lambda x: tg.autograd.grad([()], x, [tg.ones(())]),
            RuntimeError,
            "all outputs have .* GradientEdges",
        ),
        (lambda x: tg.autograd.grad(x.sum(), [(x.sum().grad_fn, True)]), RuntimeError, "number of one of its outputs"),
    ],
)
def test_wrong_calls_are_refused(call, error, fragment):
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=fragment):
        call(x)
    (x * x).sum().backward()  # and the engine goes on
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_graph_runs_once_unless_retained():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    assert x.grad.item() == 8.0


def test_integers_cannot_require_grad():
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        tg.tensor([1, 2], requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        tg.tensor([1, 2]).requires_grad_()


def test_next_functions_show_the_graph():
    x = leaf(1.0)
    y = (x * 2).exp()
    assert y.grad_fn.name() == "ExpBackward0"
    ((mul, number),) = y.grad_fn.next_functions
    assert (mul.name(), number) == ("MulBackward0", 0)
    assert mul.next_functions[0][0].variable is x
    assert mul.next_functions[1] == (None, 0)


def test_a_leaf_hides_its_graph():
    x = leaf(1.0)
    assert x.is_leaf and x.grad_fn is None and x.requires_grad
    y = x * 1
    assert not y.is_leaf and y.detach().is_leaf and not y.detach().requires_grad


def test_dtypes_of_gradients_follow_the_inputs():
    a, b = tg.ones(2, dtype=tg.float32, requires_grad=True), tg.ones(2, dtype=tg.float64, requires_grad=True)
    (a * b).sum().backward()
    assert (a.grad.dtype, b.grad.dtype) == (tg.float32, tg.float64)


def test_many_outputs_and_inputs_at_once():
    x, y = leaf(2.0), leaf(3.0)
    tg.autograd.backward([x * y, x + y], [tg.tensor(1.0, dtype=tg.float64), tg.tensor(10.0, dtype=tg.float64)])
    assert (x.grad.item(), y.grad.item()) == (13.0, 12.0)


def test_non_leaf_grad_warns_and_retain_grad_fills_it():
    x = leaf(2.0)
    y = x * x
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    y.retain_grad()
    (y * 3).backward()
    assert y.grad.item() == 3.0


def test_grad_setter_checks_what_it_gets():
    x = leaf(1.0, 2.0)
    x.grad = tg.ones(2, dtype=tg.float64)
    for bad, error in (
        (3.0, TypeError),
        (tg.ones(2), RuntimeError),
        (tg.ones(3, dtype=tg.float64), RuntimeError),
        (x, RuntimeError),
    ):
        with pytest.raises(error):
            x.grad = bad
    del x.grad
    assert x.grad is None


def test_gradients_of_views_reach_the_base():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    x.reshape(2, 2).t()[0].sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_agrees_with_hand_derivatives_of_a_small_network():
    w1 = tg.tensor([[0.5, -0.3], [0.2, 0.8]], dtype=tg.float64, requires_grad=True)
    x = tg.tensor([[1.0, 2.0]], dtype=tg.float64)
    h = (x @ w1).tanh()
    h.sum().backward()
    pre = [1 * 0.5 + 2 * 0.2, 1 * -0.3 + 2 * 0.8]
    slope = [1 - math.tanh(p) ** 2 for p in pre]
    assert w1.grad.flatten().tolist() == pytest.approx([slope[0], slope[1], 2 * slope[0], 2 * slope[1]])


def test_grad_gives_each_of_many_inputs_its_own():
    """More nodes than the table of a small pass has room for, and some inputs twice."""
    leaves = [tg.ones(2).requires_grad_() for _ in range(300)]
    middle = [t * k for k, t in enumerate(leaves)]
    total = sum(middle[1:], middle[0]).sum()
    wanted = leaves + middle + leaves[:2]
    got = tg.autograd.grad(total, wanted)
    assert [g.tolist() for g in got[:300]] == [[k, k] for k in range(300)]
    assert [g.tolist() for g in got[300:600]] == [[1, 1]] * 300
    assert [g.tolist() for g in got[600:]] == [[0, 0], [1, 1]]


def test_grad_goes_through_a_deep_graph_to_the_input_in_its_middle():
    x = tg.ones(1).requires_grad_()
    y = x
    for k in range(20_000):
        y = y * 1
        if k == 10_000:
            middle = y
    other = tg.ones(1).requires_grad_()
    got = tg.autograd.grad(y, (middle, other), allow_unused=True)
    assert got[0].tolist() == [1] and got[1] is None


def test_grad_of_two_outputs_of_one_node_are_told_apart():
    x = tg.arange(4.0).requires_grad_()
    a, b = x.split(2)
    got = tg.autograd.grad((a * 2).sum() + (b * 3).sum(), (b, a, x))
    assert [g.tolist() for g in got] == [[3, 3], [2, 2], [2, 2, 3, 3]]


def test_inputs_may_be_the_values_of_a_dict():
    x, y = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    found = tg.autograd.grad((x * y * 3).sum(), OrderedDict(x=x, y=y).values())
    assert [g.tolist() for g in found] == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("made", ["channels_last", "transposed", "expanded", "every second", "plain"])
def test_the_first_gradient_lies_as_its_leaf_does(made):
    base = tg.arange(48.0).view(2, 3, 2, 4)
    leaf = {
        "channels_last": lambda: base.contiguous(memory_format=tg.channels_last),
        "transposed": lambda: base.transpose(1, 3),
        "expanded": lambda: base[:, :1].expand(2, 3, 2, 4),
        "every second": lambda: base[..., ::2],
        "plain": lambda: base,
    }[made]().detach()
    leaf.requires_grad_()
    weights = tg.rand(leaf.shape)
    for _ in range(2):
        (leaf * weights).sum().backward()
    dense = made in ("channels_last", "transposed", "plain")
    assert leaf.grad.stride() == (leaf.stride() if dense else tg.empty(leaf.shape).stride())
    assert tg.equal(leaf.grad, 2 * weights)
    assert leaf.grad.untyped_storage().data_ptr() != weights.untyped_storage().data_ptr()
