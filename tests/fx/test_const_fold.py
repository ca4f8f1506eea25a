"""split_const_subgraphs computes once what hangs on no argument; NormalizeArgs tells arguments as they are declared."""

import copy
import operator

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn
from tinygrad_ext.fx.experimental.const_fold import get_unique_attr_name_in_module, split_const_subgraphs
from tinygrad_ext.fx.experimental.normalize import NormalizeArgs
from tinygrad_ext.fx.passes.shape_prop import ShapeProp


class Held(nn.Module):
    """Parameters, a layer, and one function of them and the arguments."""

    def __init__(self, function):
        super().__init__()
        tg.manual_seed(0)
        self.a, self.b = nn.Parameter(tg.randn(3, 3)), nn.Parameter(tg.randn(3, 3))
        self.layer, self.inner = nn.Linear(3, 3), nn.Identity()
        self.inner.c = nn.Parameter(tg.randn(3))
        self.function = function

    def forward(self, x):
        return self.function(self, x)


def kinds(module):
    return [n.op for n in module.graph.nodes]


@pytest.mark.parametrize(
    "function, count",
    [
        (lambda m, x: (x - (m.a + m.a)) * m.b, 1),
        (lambda m, x: x + m.a.t() @ m.b + m.b.sum(1), 2),
        (lambda m, x: {"r": x, "s": [x + m.a * 2, x * (m.a * 2)]}, 2),
        (lambda m, x: m.layer(m.a) + x + m.inner.c, 1),
        (lambda m, x: m.layer(x) + m.inner.c.exp() + m.inner.c, 1),
        (lambda m, x: m.a * 2, 1),
    ],
)
def test_what_hangs_on_attributes_is_computed_once(function, count):
    module, x = Held(function), tg.randn(3, 3)
    folded = split_const_subgraphs(module)
    attributes = [n for n in folded.graph.nodes if "_FX_CONST_FOLDED_ATTRS" in str(n.target)]
    assert len(attributes) == count and all(n.op == "get_attr" for n in attributes)
    assert folded.const_subgraph_module is not None and not folded.has_folding_been_run
    before, after = module(x), folded(x)
    for one, two in zip(tg.utils._pytree.tree_leaves(before), tg.utils._pytree.tree_leaves(after)):
        assert tg.equal(one, two)
    with tg.no_grad():
        module.a.zero_()
    assert all(map(tg.equal, *map(tg.utils._pytree.tree_leaves, (folded(x), after))))
    with pytest.raises(AssertionError, match="Folding has already been run"):
        folded.run_folding()


def test_nothing_to_compute():
    folded = split_const_subgraphs(Held(lambda m, x: x - m.a))
    assert folded.const_subgraph_module is None and "_FX_CONST_FOLDED_ATTRS" not in folded.code
    assert folded(tg.zeros(3, 3)).shape == (3, 3) and not folded.has_folding_been_run


def test_random_numbers_and_what_is_asked_for_stay():
    assert split_const_subgraphs(Held(lambda m, x: x + tg.bernoulli(m.a))).const_subgraph_module is None
    traced = fx.symbolic_trace(Held(lambda m, x: x + m.a.exp().log()))
    kept = split_const_subgraphs(traced, lambda n: n.target == "exp")
    assert kept.const_subgraph_module is None
    kept = split_const_subgraphs(traced, skip_folding_node_fn=lambda n: n.target == "log")
    assert [n.target for n in kept.graph.nodes if n.op == "call_method"] == ["log"]


def test_meta_and_unused_arguments_stay():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(tg.ones(2), requires_grad=False)

        def forward(self, x, unused):
            return x - (self.a + self.a)

    traced = fx.symbolic_trace(Two())
    for i, n in enumerate(traced.graph.nodes):
        n.meta["number"] = i
    ShapeProp(traced).propagate(tg.ones(2), tg.ones(2))
    folded = split_const_subgraphs(traced)
    assert kinds(folded) == ["placeholder", "placeholder", "get_attr", "call_function", "output"]
    assert [n.meta["number"] for n in folded.graph.nodes] == [0, 1, 3, 4, 5]
    folded.run_folding()
    attribute = folded._FX_CONST_FOLDED_ATTRS
    assert not attribute.requires_grad and folded(tg.ones(2), None).tolist() == [-1, -1]
    (node,) = folded.graph.find_nodes(op="get_attr")
    assert node.meta["tensor_meta"].shape == attribute.shape
    assert copy.deepcopy(folded)(tg.ones(2), None).tolist() == [-1, -1]


def test_names_that_are_taken():
    module = nn.Module()
    module.add_1, module._2 = 1, 2
    assert [get_unique_attr_name_in_module(module, n) for n in ("add_1", "2", "a.b", "new")] == [
        "add_2", "_3", "a_b", "new",
    ]  # fmt: skip


# ---- NormalizeArgs --------------------------------------------------------------------------------------------------


class Called(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.own = nn.Conv2d(1, 1, 1), Held(lambda m, x: x)

    def forward(self, x, y):
        x = nn.functional.max_pool2d(self.conv(x), 2)
        return tg.add(self.own(x), y, alpha=2) * operator.neg(y)


def test_arguments_are_told_by_keyword():
    traced, x = fx.symbolic_trace(Called()), tg.randn(1, 1, 4, 4)
    for n in traced.graph.nodes:
        n.meta["of"], n.type = n.name, tg.Tensor
    made = NormalizeArgs(traced).transform()
    found = {n.name: n for n in made.graph.nodes}
    assert found["max_pool2d"].args == () and found["max_pool2d"].kwargs["stride"] is None
    assert list(found["conv"].kwargs) == ["input"] and found["conv"].args == ()
    assert found["add"].kwargs["alpha"] == 2 and list(found["add"].kwargs)[:2] == ["input", "other"]
    assert len(found["own"].args if "own" in found else [1]) == 1 and found["neg"].args
    assert all(n.meta["of"] == n.name and n.type is tg.Tensor for n in made.graph.nodes)
    assert tg.equal(made(x, tg.ones(1)), traced(x, tg.ones(1)))


def test_arguments_are_told_by_their_place():
    traced = fx.symbolic_trace(lambda x: nn.functional.elu(input=x))
    made = NormalizeArgs(traced, normalize_to_only_use_kwargs=False).transform()
    (call,) = made.graph.find_nodes(op="call_function", target=nn.functional.elu)
    assert call.args[1:] == (1.0, False) and not call.kwargs


def test_calls_of_what_takes_any_arguments_stay():
    traced = fx.symbolic_trace(lambda x: anything(x, more=1))
    made = NormalizeArgs(traced).transform()
    (call,) = made.graph.find_nodes(op="call_function", target=anything)
    assert len(call.args) == 1 and call.kwargs == {"more": 1} and made(2) == 3


@fx.wrap
def anything(*args, **more):
    return sum(args) + more["more"]
