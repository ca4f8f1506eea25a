"""A graph that a gradient is asked of is one node of eager autograd, with no frame of Python around its plans."""

import pytest
from tinygrad_ext.core.call.levels import Observer
from tinygrad_ext.core.grad.engine import run_backward

import tinygrad_ext as tg
from tests.jit.test_noticing import frames_of
from tinygrad_ext import jit, nn
from tinygrad_ext.autograd.graph import saved_tensors_hooks


def model():
    tg.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.25), nn.Linear(4, 2))


def gradients(module, x):
    tg.manual_seed(5)
    module.zero_grad()
    module(x).square().sum().backward()
    return [p.grad.clone() for p in module.parameters()]


def product(x, w):
    return (x @ w).tanh() * w.sum()


def tensors():
    tg.manual_seed(1)
    return tg.randn(2, 3, requires_grad=True), tg.randn(3, 3, requires_grad=True)


def test_no_frame_of_python_stands_around_the_plans():
    x, grad = tg.randn(5, 3, requires_grad=True), tg.ones(5, 2)
    for front in (tg.compile, lambda m: jit.trace(m, (x,), check_trace=False)):
        module = front(model())
        assert frames_of(module, x) == []
        assert frames_of(
            lambda x, module=module: run_backward([module(x)], [grad], False, False, [x], False, True), x
        ) == ["<lambda>"]


def test_training_has_the_bits_of_eager_mode():
    x, eager, compiled = tg.randn(5, 3), model(), tg.compile(model())
    for _ in range(3):
        assert all(a.equal(b) for a, b in zip(gradients(eager, x), gradients(compiled, x)))
    state, known = eager.state_dict(), compiled._orig_mod.state_dict()
    assert all(state[key].equal(known[key]) for key in state)


def test_second_derivatives_have_the_bits_of_eager_mode():
    def orders(f):
        x, w = tensors()
        out = f(x, w).sum()
        for _ in range(2):
            out = sum(g.sin().sum() for g in tg.autograd.grad(out, (x, w), create_graph=True))
        return out

    assert orders(jit.script(product)).equal(orders(product))


def test_saved_tensors_go_through_hooks_and_have_names():
    x, w = tensors()
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        out = jit.script(product)(x, w)
    node = out.grad_fn
    assert (
        len(packed) == len([t for t in node.saved_tensors if t is not None]) > 0
        and node.next_functions[1][0].variable is w
    )
    assert node._edge_names() == ["arg0", "arg1"]
    out.sum().backward()
    got, (x, w) = (x.grad, w.grad), tensors()
    product(x, w).sum().backward()
    assert got[0].equal(x.grad) and got[1].equal(w.grad)


def test_hooks_of_the_node_see_and_change_gradients():
    x, w = tensors()
    out = jit.script(product)(x, w)
    seen = []
    out.grad_fn.register_hook(lambda inputs, outputs: seen.append(outputs[0].shape) or (inputs[0] * 2, None))
    out.register_hook(lambda grad: grad * 3)
    out.sum().backward()
    a, b = tensors()
    product(a, b).mul(3).sum().backward()
    assert x.grad.equal(a.grad * 2) and w.grad is None and seen == [(2, 3)]


def test_an_argument_written_to_before_the_second_derivative_is_named():
    x, b = tensors()[0], tg.ones(2, 3, requires_grad=True)
    out = jit.script(lambda x, b: (x + b).exp())(x, b)
    with tg.no_grad():
        b.add_(1)
    tg.autograd.grad(out.sum(), x, retain_graph=True)  # reads the result alone
    with pytest.raises(RuntimeError, match=r"argument arg1 of a graph.* is at version 1; expected version 0"):
        tg.autograd.grad(out.sum(), x, create_graph=True)


def test_what_is_held_goes_with_the_saved_tensors():
    x, w = tensors()
    out = jit.script(product)(x, w).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        tg.autograd.grad(out, x, create_graph=True)


def test_levels_see_each_op():
    class Names(Observer):
        def process(self, operation, args):
            seen.append(operation.name)
            return operation(*args)

    seen, scripted = [], jit.script(product)
    scripted(*tensors())
    x, w = tensors()
    with Names():
        out = scripted(x, w)
    assert {"aten::matmul", "aten::tanh"} <= set(seen) or {"aten::mm", "aten::tanh"} <= set(seen)
    out.sum().backward()
    a, b = tensors()
    product(a, b).sum().backward()
    assert x.grad.equal(a.grad) and w.grad.equal(b.grad)


def test_a_program_that_fails_leaves_generators_as_they_were():
    scripted = jit.script(lambda x, w: tg.nn.functional.dropout(x, 0.5) @ w)
    x, w = tensors()
    scripted(x, w)
    before = tg.get_rng_state()
    with pytest.raises(RuntimeError):
        scripted(x, w[:2])
    assert tg.get_rng_state().equal(before)
