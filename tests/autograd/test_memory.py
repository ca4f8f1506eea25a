"""Graphs are freed by reference counting alone, deep ones without recursion, and loops leave memory flat."""

import gc
import weakref

import pytest
from collecting import collect

import tinygrad_ext as tg


@pytest.fixture
def no_gc():
    collect()
    gc.disable()
    yield
    gc.enable()


def in_use():
    return tg.memory_stats()["allocated"]


def test_a_graph_goes_with_its_last_tensor(no_gc):
    x = tg.ones(1000, requires_grad=True)
    before = in_use()
    y = (x * x).exp().sum()
    node = weakref.ref(y.grad_fn)
    assert in_use() > before
    del y
    assert node() is None and in_use() == before


def test_a_run_graph_and_its_leaf_go_too(no_gc):
    before = in_use()
    x = tg.ones(1000, requires_grad=True)
    alive = weakref.ref(x)
    (x * x).exp().sum().backward()
    del x
    assert alive() is None and in_use() == before


def test_saved_outputs_make_no_circle(no_gc):
    x = tg.ones(10, requires_grad=True)
    for name in ("exp", "tanh", "sigmoid", "sqrt", "reciprocal"):
        y = getattr(x, name)()
        alive = weakref.ref(y)
        del y
        assert alive() is None, name


def test_double_backward_graphs_go(no_gc):
    x = tg.ones(100, requires_grad=True)
    before = in_use()
    (g,) = tg.autograd.grad((x * x * x).sum(), x, create_graph=True)
    g.sum().backward()
    x.grad = None
    del g
    assert in_use() == before


@pytest.mark.slow
def test_a_million_nodes_are_built_run_and_freed(no_gc):
    x = tg.ones((), requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + x
    y.backward()
    assert x.grad.item() == 1_000_001
    del y
    y = x
    for _ in range(1_000_000):
        y = y * 1.0
    del y  # never run


@pytest.mark.slow
def test_a_hundred_thousand_steps_leave_memory_flat():
    w = tg.ones(8, requires_grad=True)

    def steps(n):
        for _ in range(n):
            w.grad = None
            (w * w + w).sum().backward()

    steps(1000)
    before = tg.memory_stats()["allocated"]
    objects = len(gc.get_objects())
    steps(100_000)
    assert tg.memory_stats()["allocated"] == before
    assert abs(len(gc.get_objects()) - objects) < 50


def test_cycles_through_hooks_are_collected():
    def make():
        y = tg.ones(3, requires_grad=True) * 2
        hold = [y]
        y.register_hook(lambda g: len(hold) * g)
        return weakref.ref(y)

    alive = make()
    collect()
    assert alive() is None


def test_attributes_of_tensors_are_collected():
    x = tg.ones(3)
    x.me = x
    alive = weakref.ref(x)
    del x
    collect()
    assert alive() is None
