"""What a derived graph asks of sizes: each question once, and only where the answer holds."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit


def joint_of(graph):
    (joint,) = (joint for joints in graph.derivative.joints.values() for joint in joints)
    return joint


def gradients(function, *tensors):
    tensors = [t.clone().requires_grad_() for t in tensors]
    function(*tensors).sum().backward()
    return [t.grad for t in tensors]


def test_a_chain_asks_once():
    def chain(x, w):
        for _ in range(10):
            x = (x * w).tanh() + x.sin()
            x = x - x.sigmoid()
        return x

    traced = jit.trace(chain, (tg.randn(4), tg.randn(4)))
    x, w = tg.randn(4), tg.randn(4)
    assert all(a.equal(b) for a, b in zip(gradients(traced, x, w), gradients(chain, x, w), strict=True))
    guards = [node for node in joint_of(traced.graph).forward.walk() if node.op == "prim::guard"]
    assert len(guards) == 1
    for x, w in ((tg.randn(3, 4), tg.randn(3, 4)), (tg.randn(4), tg.randn(1)), (tg.randn(1), tg.randn(5))):
        assert all(a.equal(b) for a, b in zip(gradients(traced, x, w), gradients(chain, x, w), strict=True))


@pytest.mark.parametrize("sizes", [(3, 3), (3, 1), (1, 3)])
def test_what_holds_in_one_branch_is_not_taken_for_granted_behind_it(sizes):
    @jit.script
    def program(x, w):
        if float(x.sum()) > 0:
            y = x * w
        else:
            y = w * 1.5
        return y * x

    def eager(x, w):
        return (x * w if float(x.sum()) > 0 else w * 1.5) * x

    first = tg.ones(3), tg.ones(3)
    gradients(program, *first)
    for sign in (1.0, -1.0):
        x, w = sign * tg.arange(1.0, 1.0 + sizes[0]), tg.arange(1.0, 1.0 + sizes[1])
        assert all(a.equal(b) for a, b in zip(gradients(program, x, w), gradients(eager, x, w), strict=True))


def test_examples_do_not_live_as_long_as_graphs():
    traced = jit.trace(lambda x: (x.exp() * x).sum(), (tg.ones(3),))
    assert all(v.hint.is_meta for node in traced.graph.walk() for v in node.outputs)
    traced(tg.ones(3, requires_grad=True)).backward()
    joint = joint_of(traced.graph)
    assert {value.hint for node in joint.undivided.walk() for value in node.outputs} == {None}
    again = tg.ones(3, requires_grad=True)
    (grad,) = tg.autograd.grad(traced(again), again, create_graph=True)
    (second,) = tg.autograd.grad(grad.sum(), again)
    assert second.allclose(3 * tg.ones(3).exp())
