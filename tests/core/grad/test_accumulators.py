"""The node of a leaf sleeps between two graphs: nobody can tell it from a new one."""

import tracemalloc
import weakref

import numpy as np
import pytest
from collecting import collect

import tinygrad_ext as tg


def _node(leaf):
    return (leaf * 2).grad_fn.next_functions[0][0]


def test_a_woken_node_knows_the_leaf_as_it_is():
    x = tg.ones(3, requires_grad=True)
    assert _node(x)._input_metadata[0].shape == (3,)
    x.data = tg.ones(2, 2, 2, 2, 2, dtype=tg.float64)
    node = _node(x)
    assert node.variable is x
    assert node._input_metadata[0].shape == (2,) * 5
    assert node._input_metadata[0].dtype == tg.float64
    x.data = tg.ones(4)
    (x * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(4, 3.0, np.float32))


def test_a_graph_keeps_the_node_of_what_the_leaf_was():
    x = tg.ones(3, requires_grad=True)
    before = x * 2
    x.data = tg.ones(4)
    after = x * 3
    assert before.grad_fn.next_functions[0][0] is not after.grad_fn.next_functions[0][0]
    after.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(4, 3.0, np.float32))
    del before
    (x * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(4, 6.0, np.float32))


def test_it_is_newer_than_what_is_older():
    x, y = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    first = _node(x)._sequence_nr()
    other = _node(y)._sequence_nr()
    assert first < other < _node(x)._sequence_nr()


def test_hooks_go_with_the_graph_and_those_of_the_leaf_stay():
    x, seen = tg.ones(2, requires_grad=True), []
    _node(x).register_hook(lambda *grads: seen.append("node"))
    x.register_hook(lambda grad: seen.append("leaf"))
    (x * 2).sum().backward()
    assert seen == ["leaf"]


def test_a_hook_on_the_leaf_of_a_sleeping_node_is_called():
    x, seen = tg.ones(2, requires_grad=True), []
    _node(x)
    x.register_hook(seen.append)
    (x * 2).sum().backward()
    assert len(seen) == 1


def test_weak_references_end_with_the_last_graph():
    x = tg.ones(2, requires_grad=True)
    reference = weakref.ref(_node(x))
    assert reference() is None
    y = x * 2
    reference = weakref.ref(y.grad_fn.next_functions[0][0])
    assert reference() is not None
    del y
    assert reference() is None
    (x * 2).sum().backward()


@pytest.mark.parametrize("subclass", [False, True])
def test_leaves_take_their_nodes_with_them(subclass):
    kind = type("Sub", (tg.Tensor,), {}) if subclass else tg.Tensor

    def use(n):
        for _ in range(n):
            x = tg.ones(2).as_subclass(kind).requires_grad_()
            for _ in range(3):
                (x * 2).sum().backward()
            x.grad = None

    use(50)
    collect()
    tracemalloc.start()
    try:
        use(10)
        before = tracemalloc.get_traced_memory()[0]
        use(500)
        collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_a_leaf_in_a_circle_is_collected():
    x = tg.ones(2, requires_grad=True)
    _node(x)
    x.itself = x
    (x * 2).sum().backward()
    reference = weakref.ref(x)
    del x
    collect()
    assert reference() is None


def test_the_last_graph_may_outlive_the_leaf():
    x = tg.ones(2, requires_grad=True)
    _node(x)
    y = (x * 2).sum()
    reference = weakref.ref(x)
    del x
    assert reference() is not None
    y.backward()
    del y
    assert reference() is None
