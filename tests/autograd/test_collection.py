"""Circles through tensors and graphs are collected, whatever closed them and when; the rest is not the collector's."""

import gc
import random
import weakref

import pytest
import untracked
from tinygrad_ext.core.node import Node

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad
from tinygrad_ext.autograd.graph import saved_tensors_hooks


class Sub(tg.Tensor):
    pass


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@tg.library.custom_op("collection::thrice", mutates_args=())
def thrice(x: tg.Tensor) -> tg.Tensor:
    return x * 3


thrice.register_autograd(lambda ctx, g: g * 3, setup_context=lambda ctx, inputs, output: None)


@pytest.fixture(autouse=True)
def only_by_hand():
    gc.collect()
    gc.disable()
    gc.freeze()  # a collection looks at what the test made
    yield
    gc.unfreeze()
    gc.enable()


def nothing(*held):
    """A hook's answer that changes no gradient."""


def ours():
    """How many tensors and nodes the collector knows."""
    return sum(isinstance(o, (tg.Tensor, Node)) for o in gc.get_objects())


def leaf():
    return tg.ones(4, requires_grad=True)


# ---- circles -------------------------------------------------------------------------------------------------------
# Each builds a graph, hangs the newest tensor on something older, and returns it.


def closing(function):
    CLOSED[function.__name__.replace("_", " ")] = function
    return function


CLOSED = {}


@closing
def a_hook_of_a_leaf():
    x = leaf()
    y = (x * 2).exp()
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_after_accumulation():
    x = leaf()
    y = (x * 2).exp()
    x.register_post_accumulate_grad_hook(lambda t: nothing(y))
    return y


@closing
def a_hook_of_a_parameter():
    x = tg.nn.Parameter(tg.ones(4))
    y = (x * 2).exp()
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_of_an_intermediate():
    h = leaf() * 2
    y = h.exp() + h
    h.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_that_holds_its_own_tensor():
    y = leaf() * 2
    y.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_of_a_node():
    h = leaf() * 2
    y = h.exp()
    h.grad_fn.register_hook(lambda i, o: nothing(y))
    return y


@closing
def a_prehook_of_a_node():
    h = leaf() * 2
    y = h.exp()
    y.grad_fn.next_functions[0][0].register_prehook(lambda o: nothing(y))
    return y


@closing
def a_hook_of_an_accumulator():
    x = leaf()
    y = x * 2
    y.grad_fn.next_functions[0][0].register_hook(lambda i, o: nothing(y))
    return y


@closing
def metadata():
    h = leaf() * 2
    y = h.exp()
    h.grad_fn.metadata["out"] = y
    return y


@closing
def an_attribute_of_a_leaf():
    x = leaf()
    y = (x * 2).exp()
    x.out = y
    return y


@closing
def an_attribute_of_a_saved_intermediate():
    h = leaf() * 2
    y = h * h + 1
    h.out = y
    return y


@closing
def an_attribute_of_a_parameter():
    x = tg.nn.Parameter(tg.ones(4))
    y = (x * 2).exp()
    x.out = y
    return y


@closing
def an_attribute_set_through_the_dict():
    x = leaf()
    y = x * x
    vars(x)["out"] = y
    return y


@closing
def an_attribute_in_a_dict_that_was_taken_before():
    x = leaf()
    attributes = x.__dict__
    y = x * x
    attributes["out"] = y
    return y


@closing
def an_assigned_dict():
    x = leaf()
    y = x * x
    x.__dict__ = {"out": y}
    return y


@closing
def an_attribute_of_a_base():
    x = leaf() * 1
    y = x[:2] * 2
    x.out = y
    return y


@closing
def an_attribute_of_a_gradient():
    x = leaf()
    y = x * x
    g = tg.ones(4)
    x.grad = g
    z = y * 2
    g.out = z
    return z


@closing
def a_gradient_with_an_attribute():
    x = leaf()
    y = x * x
    g = tg.ones(4)
    g.out = y
    x.grad = g
    return y


@closing
def a_gradient_of_a_subclass():
    x = leaf()
    y = x * x
    g = tg.ones(4).as_subclass(Sub)
    x.grad = g
    g.out = y
    return y


@closing
def an_attribute_of_a_subclass():
    x = leaf().as_subclass(Sub)
    y = (x * 2).as_subclass(tg.Tensor) * 3
    x.out = y
    return y


@closing
def an_attribute_of_a_function_node():
    h = Double.apply(leaf() * 1)
    y = h.exp() * 2
    h.grad_fn.out = y
    return y


@closing
def an_attribute_of_a_custom_op_node():
    h = thrice(leaf() * 1)
    y = h.exp() * 2
    h.grad_fn.out = y
    return y


@closing
def a_packed_value():
    kept = []
    with saved_tensors_hooks(lambda t: kept, lambda p: tg.ones(4)):
        y = (leaf() * leaf()) * 2
    kept.append(y)
    return y


@closing
def a_value_packed_later():
    h = leaf() * leaf()
    y = h * 2
    h.grad_fn._raw_saved_self.register_hooks(lambda t: [y], lambda p: p)
    return y


@closing
def a_hook_behind_writes_through_views():
    x = leaf()
    y = x * 1
    y[:2].mul_(2)
    y[1:].add_(x[1:])
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_behind_a_list():
    x = leaf()
    y = tg.cat([x * 1, x, tg.stack([x, x]).sum(0)])
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_behind_a_second_derivative():
    x = leaf()
    (y,) = grad((x * x * x).sum(), x, create_graph=True)
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_list_that_is_an_argument():
    x = leaf()
    parts = [1, 3]
    y = x.split(parts)[0]
    z = y * 2
    parts.append(z)
    return z


@closing
def a_view_of_a_tensor_with_an_attribute():
    x = leaf() * 1
    x.mine = []
    y = x[:2] * 2
    x.mine.append(y)
    return y


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
    gc.collect()
    assert alive() is None
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
    gc.collect()
    assert alive() is None


# ---- anything after anything ---------------------------------------------------------------------------------------


class Program:
    """A few tensors, and steps that link them to one another and hang them on one another."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tensors = [leaf(), tg.nn.Parameter(tg.ones(4)), tg.ones(4), leaf() * 2]
        self.alive = []

    def any(self):
        return self.random.choice(self.tensors)

    def put(self, t):
        self.alive.append(weakref.ref(t))
        self.tensors.append(t)
        if len(self.tensors) > 8:
            del self.tensors[self.random.randrange(8)]

    def make(self):
        self.put(self.random.choice([leaf, lambda: tg.ones(4), lambda: tg.nn.Parameter(tg.ones(4))])())

    def multiply(self):
        self.put(self.any() * self.any())

    def add_number(self):
        self.put(self.any() * 1.5)

    def join(self):
        self.put(tg.cat([self.any()[:2], self.any()[2:]]))

    def view(self):
        self.put(self.any()[:].view(4))

    def write(self):
        self.any().mul_(self.any())

    def write_through_a_view(self):
        self.any()[1:3].add_(self.any()[1:3])

    def function(self):
        self.put(Double.apply(self.any()))

    def custom_op(self):
        self.put(thrice(self.any()))

    def subclass(self):
        self.put(self.any().as_subclass(self.random.choice([Sub, tg.Tensor])))

    def hook(self):
        held = self.any()
        self.any().register_hook(lambda g: held and None)

    def attribute(self):
        self.any().held = self.any()

    def metadata(self):
        node = self.any().grad_fn
        if node is not None:
            node.metadata["held"] = self.any()

    def retain(self):
        self.any().retain_grad()

    def gradient(self):
        self.any().grad = self.any()

    def no_gradient(self):
        self.any().grad = None

    def detach(self):
        self.put(self.any().detach())

    def pack(self):
        held = self.any()
        with saved_tensors_hooks(lambda t: (t, held), lambda p: p[0]):
            self.multiply()

    def backward(self):
        self.any().sum().backward(retain_graph=self.random.random() < 0.5)

    def second(self):
        t = self.any()
        self.put(grad((t * t).sum(), t, create_graph=True)[0])

    def collect(self):
        gc.collect()

    def step(self):
        name = self.random.choice([n for n in vars(Program) if n[0] != "_" and n not in ("any", "put", "step")])
        try:
            getattr(self, name)()
        except RuntimeError:  # a leaf in place, no gradient needed, freed: refused as it should be
            pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("threshold", [1, 0])
def test_random_programs_leave_nothing_that_is_not_collected(threshold):
    was = gc.get_threshold()
    before = tg.memory_stats()["allocated"]
    gc.set_threshold(threshold)
    gc.enable()
    try:
        for seed in range(150):
            program = Program(seed)
            for _ in range(40):
                program.step()
                assert untracked.faults() == [], seed
            alive = program.alive
            del program
            gc.collect()
            assert not any(r() is not None for r in alive), seed
    finally:
        gc.set_threshold(*was)
    assert tg.memory_stats()["allocated"] == before
