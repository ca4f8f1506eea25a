"""Circles through tensors and graphs are collected, whatever closed them and when; the rest is not the collector's."""

import gc
import threading
import weakref

import pytest
import untracked
from circles import CLOSED, Double, Sub, custom_op, leaf, thrice
from collecting import collect
from tinygrad_ext.core.grad.node import Node

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad


@pytest.fixture(autouse=True)
def only_by_hand():
    leaf().register_hook(print)  # by which all objects are known, those that earlier tests left too
    collect()
    gc.disable()
    with custom_op():
        gc.freeze()  # a collection looks at what the test made
        yield
        gc.unfreeze()
    gc.enable()


def ours():
    """How many tensors and nodes the collector knows."""
    return sum(isinstance(o, (tg.Tensor, Node)) for o in gc.get_objects())


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("after", ["nothing", "backward", "more"])
def test_a_circle_is_collected(name, after):
    before = tg.memory_stats()["allocated"]
    y = CLOSED[name]()
    if after == "more":
        y = y * 2 + y.sum()
    elif after == "backward" and "packed later" not in name:
        y.sum().backward(retain_graph=True)
    assert untracked.faults() == []
    alive = weakref.ref(y)
    del y
    collect()
    assert alive() is None
    assert tg.memory_stats()["allocated"] == before


def test_what_a_finalizer_leaves_is_collected_too():
    class Leaving:
        def __del__(self):
            circle = [self.y]
            circle.append(circle)

    before = tg.memory_stats()["allocated"]
    holder = Leaving()
    holder.y, holder.me = tg.ones(1000), holder
    del holder
    collect()
    assert tg.memory_stats()["allocated"] == before


# ---- what the collector is spared ----------------------------------------------------------------------------------


def chain(x):
    y = x * 1.0
    for _ in range(100):
        y = (y * x + y.exp() * 0.5).view(2, 2).sum(0).sum().expand(4) * 2
        y.sub_(1)
        y[:2].mul_(x[:2])
    return y


@pytest.mark.parametrize("make", [leaf, lambda: tg.nn.Parameter(tg.ones(4)), lambda: leaf() * 2])
def test_a_plain_graph_is_not_in_the_collectors_lists(make):
    x = make()
    before = ours()
    y = chain(x)
    assert ours() == before
    assert not gc.is_tracked(x) and not gc.is_tracked(y)


def test_what_a_backward_leaves_is_not_either():
    x = leaf()
    before = ours()
    kept = grad(chain(x).sum(), x, create_graph=True)
    x.sum().backward()
    assert ours() == before
    assert not gc.is_tracked(kept[0]) and not gc.is_tracked(x.grad)


def test_all_are_known_once_something_hangs_on_one():
    x, other = leaf(), leaf()
    y = x * 2
    assert not gc.is_tracked(y)
    x.register_hook(lambda g: g)
    assert gc.is_tracked(y) and gc.is_tracked(other)


def test_consumers_of_what_may_close_a_circle_are_known():
    x = leaf()
    x.register_hook(lambda g: g)
    assert gc.is_tracked(x * 2)
    assert gc.is_tracked(Double.apply(leaf()) * 2)
    assert gc.is_tracked(tg.mul(leaf().as_subclass(Sub), 2))


def test_building_on_what_is_known_makes_nothing_else_known():
    x, other = leaf(), leaf()
    x.register_hook(lambda g: g)
    _ = other * 2
    assert not gc.is_tracked(other)
    kept = [x * 2, x.view(2, 2), x.split(2), x.max(0), Double.apply(x), thrice(x)]
    assert not gc.is_tracked(other), kept


def test_a_leaf_that_holds_nothing_is_taken_out_again():
    x, other = leaf(), leaf()
    other.register_hook(lambda g: g)
    assert gc.is_tracked(x)
    y = x * 2
    assert not gc.is_tracked(x) and not gc.is_tracked(y)
    assert untracked.faults() == []


def test_retained_gradients_keep_nothing_alive():
    y = leaf() * 2
    y.retain_grad()
    z = y * 2
    assert not gc.is_tracked(z)
    z.sum().backward()
    assert y.grad.tolist() == [2, 2, 2, 2]
    assert untracked.faults() == []


def test_subclasses_and_functions_stay_known():
    assert gc.is_tracked(tg.ones(2).as_subclass(Sub))
    assert gc.is_tracked(Double.apply(leaf()).grad_fn)


# ---- owners that the library did not make --------------------------------------------------------------------------


def test_an_output_that_something_else_already_owns_is_known_with_its_owner():
    y = tg.ones(4)
    view = y.view(2, 2)

    class Returns(Function):
        @staticmethod
        def forward(ctx, x):
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    out = Returns.apply(leaf())
    assert out is y
    assert gc.is_tracked(view)
    assert untracked.faults() == []


@pytest.mark.parametrize("pair", [False, True])
def test_what_an_op_of_somebody_else_returns_is_known_with_its_owner(pair):
    kept = [tg.ones(4), tg.ones(4)]
    views = [t.view(2, 2) for t in kept]

    def forward(x):
        return tuple(kept) if pair else kept[0]

    register = "Tensor, Tensor" if pair else "Tensor"
    with tg.library.Library("collection", "FRAGMENT") as library:
        library.define(f"cached(Tensor x) -> {f'({register})' if pair else register}")
        library.impl("cached", forward, "CPU")
        x = leaf()
        x.register_hook(lambda g: g)
        tg.ops.collection.cached(x)
    assert untracked.faults() == []
    del views


def test_a_circle_through_an_op_that_is_taken_back_is_collected():
    def make():
        kept = []

        def forward(x):
            kept.append(x)
            return x * 2

        with tg.library.Library("collection", "FRAGMENT") as library:
            library.define("keeping(Tensor x) -> Tensor")
            library.impl("keeping", forward, "CPU")
            y = tg.ops.collection.keeping(leaf() * 1)
        kept.append(y)
        return weakref.ref(y)

    alive = make()
    collect()
    assert alive() is None


def test_collect_waits_for_the_collection_of_another_thread():
    class Slow:
        def __del__(self):
            inside.set()
            release.wait(20)

    def elsewhere():
        slow, circle = Slow(), []
        circle.append((circle, slow, tg.ones(1000)))
        del slow, circle
        gc.collect()

    before = tg.memory_stats()["allocated"]
    inside, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=elsewhere)
    thread.start()
    inside.wait()
    assert gc.collect() == 0 and tg.memory_stats()["allocated"] > before
    threading.Timer(0.05, release.set).start()
    collect()
    assert tg.memory_stats()["allocated"] == before
    thread.join()
