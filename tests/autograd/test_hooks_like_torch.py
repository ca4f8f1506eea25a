"""Which hooks run where a pass only takes a gradient, nodes as functions, and what is called at the end of a pass."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Variable


def hooked():
    """(leaf, its clone, what was seen): tensor hooks write 1, node prehooks 2, posthooks 3."""
    seen = []
    a = tg.ones((), requires_grad=True)
    b = a.clone()
    for t, node in ((b, b.grad_fn), (a, b.grad_fn.next_functions[0][0])):
        node.register_prehook(lambda grads: seen.append(2))
        node.register_hook(lambda *grads: seen.append(3))
        t.register_hook(lambda grad: seen.append(1))
    return a, b, seen


def test_all_of_them_run_in_a_backward_pass():
    a, b, seen = hooked()
    b.sum().backward()
    assert seen == [1, 2, 3, 1, 2, 3]


def test_grad_runs_the_tensor_hooks_alone_of_its_inputs():
    a, b, seen = hooked()
    tg.autograd.grad(b.sum(), a, retain_graph=True)
    assert seen == [1, 2, 3, 1]
    seen.clear()
    tg.autograd.grad(b.sum(), b)
    assert seen == [1]


def test_backward_runs_all_hooks_of_its_inputs():
    a, b, seen = hooked()
    b.sum().backward(inputs=(b,))
    assert seen == [1, 2, 3]


# ---- nodes as functions --------------------------------------------------------------------------------------------


def test_a_node_gives_the_gradients_of_its_inputs():
    x, y = tg.tensor([2.0, 3.0], requires_grad=True), tg.tensor([5.0, 7.0], requires_grad=True)
    node = (x * y).grad_fn
    left, right = node(tg.tensor([1.0, 10.0]))
    assert left.tolist() == [5.0, 70.0] and right.tolist() == [2.0, 30.0]
    assert x.exp().grad_fn(tg.ones(2)).tolist() == x.exp().tolist()
    assert (x * 2.0).grad_fn(tg.ones(2))[1] is None
    node.next_functions[0][0](tg.ones(2))
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_node_refuses_what_is_no_gradient_of_its_outputs():
    x = tg.ones(2, requires_grad=True)
    y = x * x
    with pytest.raises(TypeError, match="MulBackward0 expected 1 arguments, got 2 instead"):
        y.grad_fn(x, x)
    with pytest.raises(TypeError, match="expected a Tensor or None as argument 0, got int"):
        y.grad_fn(1)
    with pytest.raises(RuntimeError, match="invalid gradient"):
        y.grad_fn(tg.ones(3))
    y.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.grad_fn(tg.ones(2))


# ---- at the end of a pass ------------------------------------------------------------------------------------------


def test_callbacks_are_called_when_all_has_run():
    seen = []
    x = tg.ones(2, requires_grad=True)

    def last():
        seen.append(x.grad.tolist())
        Variable._execution_engine.queue_callback(lambda: seen.append("later"))

    y = x * 2.0
    y.register_hook(lambda grad: Variable._execution_engine.queue_callback(last))
    (y * 3.0).sum().backward()
    assert seen == [[6.0, 6.0], "later"]


def test_callbacks_belong_to_a_pass():
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        Variable._execution_engine.queue_callback(print)
    x = tg.ones(2, requires_grad=True)
    x.register_hook(lambda grad: Variable._execution_engine.queue_callback(3))
    with pytest.raises(TypeError, match="must be callable, not int"):
        x.sum().backward()


# ---- what a derivative keeps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [tg.var, lambda x, dim: tg.var_mean(x, dim=dim)[0]])
def test_a_variance_may_be_written_to(op):
    x = tg.arange(9.0).reshape(3, 3).requires_grad_()
    op(x, dim=0).mul_(2.0).sum().backward()
    again = x.detach().requires_grad_()
    (op(again, dim=0) * 2.0).sum().backward()
    assert tg.equal(x.grad, again.grad)


def test_a_checkpoint_is_run_again_under_its_autocast():
    from tinygrad_ext.utils.checkpoint import checkpoint

    for reentrant in (True, False):
        for enabled in (True, False):
            seen = []

            def products(x, y):
                seen.append(tg.mm(x, y).dtype)
                return tg.mm(x, y)

            x, y = tg.randn(3, 3, requires_grad=True), tg.randn(3, 3, requires_grad=True)
            with tg.autocast("cpu", dtype=tg.bfloat16, enabled=enabled):
                loss = checkpoint(products, x, y, use_reentrant=reentrant).sum()
            with tg.autocast("cpu", dtype=tg.bfloat16, enabled=not enabled):
                loss.backward()
            assert seen == [tg.bfloat16 if enabled else tg.float32] * 2 and x.grad.dtype == tg.float32


def test_posthooks_of_what_backward_was_given_as_inputs_run():
    x, seen = tg.ones(2, requires_grad=True), []
    y = x * 2.0
    y.grad_fn.register_hook(lambda given, arrived: seen.append(given))
    (y * 3.0).sum().backward(inputs=[y])
    assert seen == [(None, None)] and y.grad.tolist() == [3.0, 3.0]


def test_a_leafs_node_refuses_a_gradient_of_another_shape():
    p = tg.ones(3, requires_grad=True)
    node = (p * 2.0).grad_fn.next_functions[0][0]
    for wrong in (tg.ones(5), tg.ones(2, 2), tg.ones(()), tg.ones(3, device="meta")):
        with pytest.raises(RuntimeError, match="invalid gradient"):
            node(wrong)
    assert p.grad is None


def test_the_gradient_of_one_adaptive_mean_may_be_written_to():
    x = tg.ones(1, 2, 3, 3, requires_grad=True)
    (g,) = tg.autograd.grad(tg.nn.functional.adaptive_avg_pool2d(x, 1).sum(), x)
    assert g.mul_(18.0).sum().item() == pytest.approx(36.0)


def test_detaching_in_place_drops_the_tangent():
    value, tangent = tg.func.jvp(lambda x: (x * 3.0).detach_(), (tg.ones(2),), (tg.ones(2),))
    assert value.tolist() == [3.0, 3.0] and tangent.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        tg.func.jvp(lambda x: (x * 3.0)[0].detach_(), (tg.ones(2),), (tg.ones(2),))
