"""A pass has room at hand for a few nodes, roots and inputs; of more it takes as many, and lets go of all."""

import weakref

import pytest

import tinygrad_ext as tg

MANY = 40


def test_more_nodes_wait_at_once_than_there_is_room_at_hand():
    x = tg.ones(3, requires_grad=True)
    tg.stack([x * k for k in range(MANY)]).sum().backward()
    assert x.grad.tolist() == [sum(range(MANY))] * 3


@pytest.mark.parametrize("count", [1, 4, 8, 9, MANY])
def test_any_number_of_roots_and_inputs(count):
    leaves = [tg.full((2,), float(k), requires_grad=True) for k in range(count)]
    roots = [leaf * leaf for leaf in leaves]
    found = tg.autograd.grad(roots, leaves, [tg.ones(2)] * count)
    assert [g.tolist() for g in found] == [[2.0 * k] * 2 for k in range(count)]


@pytest.mark.parametrize("bad", [0, 5, MANY - 1])
def test_a_root_that_is_refused_leaves_nothing_behind(bad):
    leaves = [tg.ones(2, requires_grad=True) for _ in range(MANY)]
    roots = [leaf.clone() for leaf in leaves]
    roots[bad] = tg.ones(2)
    with pytest.raises(RuntimeError, match="does not require grad"):
        tg.autograd.grad(roots, leaves, [tg.ones(2)] * MANY)
    gone = [weakref.ref(leaf) for leaf in leaves]
    del leaves, roots
    assert [ref() for ref in gone] == [None] * MANY


def test_memory_of_nodes_that_went_serves_new_ones():
    x, y = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    for _ in range(3):
        kept = [(x * y).sum() for _ in range(600)]  # more than are kept
        del kept
        (x * y + x).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0] and y.grad.tolist() == [3.0, 3.0]
    assert x.grad.grad_fn is None and len(tg.ones(2).add(x).grad_fn.next_functions) == 2


def test_gradients_add_up_in_the_memory_of_grad():
    x = tg.ones(2, requires_grad=True)
    x.sum().backward()
    seen, version = x.grad, x.grad._version
    x.sum().backward()
    assert x.grad is seen and seen.tolist() == [2.0, 2.0] and seen._version == version + 1


def test_a_gradient_with_a_history_of_its_own_takes_more_without_losing_it():
    x = tg.full((2,), 3.0, requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    history = x.grad.grad_fn
    x.sum().backward()
    assert history is not None and x.grad.tolist() == [7.0, 7.0]
    x.grad = None  # a circle through x


def test_a_hook_set_while_its_node_runs_is_called():
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            ctx.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
            return 2 * grad

    seen = []
    x = tg.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert seen == [1] and x.grad.tolist() == [2.0, 2.0]
