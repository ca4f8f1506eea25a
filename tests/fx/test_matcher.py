"""SubgraphMatcher: the places that PyTorch's finds, with what stands for what."""

import importlib.util

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn

HAVE_TORCH = importlib.util.find_spec("torch") is not None


def programs(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.other = T.nn.Linear(2, 2), T.nn.Linear(2, 2)

        def forward(self, x, y):
            a = T.relu(x + y)
            b = T.relu(a + x)
            c = T.relu(self.fc(b) + 1)
            return T.relu(self.other(c) + c), T.sigmoid(b)

    return fx_of(T).symbolic_trace(Net())


def fx_of(T):
    return fx if T is tg else importlib.import_module("torch.fx")


def matcher_utils(T):
    return importlib.import_module(f"{T.__name__}.fx.passes.utils.matcher_utils")


def add_relu(T):
    return lambda p, q: T.relu(p + q)


def with_a_number(T):
    return lambda p: T.relu(p + 2)


def two_results(T):
    def f(p, q):
        s = p + q
        return s, T.relu(s)

    return f


def chain(T):
    return lambda p, q, r: T.relu(T.relu(p + q) + r)


def the_end(T):
    return lambda p, q: (T.relu(p + q), T.sigmoid(q))


CASES = [
    (add_relu, {}),
    (add_relu, {"match_placeholder": True}),
    (add_relu, {"remove_overlapping_matches": False}),
    (with_a_number, {}),
    (with_a_number, {"ignore_literals": True}),
    (two_results, {}),
    (chain, {}),
    (the_end, {"match_output": True}),
]


def found(T, pattern, options):
    graph = programs(T).graph
    pattern = fx_of(T).symbolic_trace(pattern(T)).graph
    matches = matcher_utils(T).SubgraphMatcher(pattern, **options).match(graph)
    rows = [
        (sorted((p.name, str(n)) for p, n in m.nodes_map.items()), [str(n) for n in m.placeholder_nodes],
         [str(n) for n in m.returning_nodes])
        for m in matches
    ]  # fmt: skip
    return sorted(rows)


@pytest.mark.parametrize(("pattern", "options"), CASES, ids=lambda a: "-".join(a) if type(a) is dict else a.__name__)
def test_places_are_those_of_pytorch(pattern, options):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    assert found(tg, pattern, options) == found(torch, pattern, options)


def test_what_stands_for_what():
    rows = found(tg, add_relu, {})
    assert [returns for _, _, returns in rows] and ("p", "x") in rows[0][0] and rows[0][1] == ["x", "y"]


def test_nodes_have_the_names_that_the_pattern_gives_them():
    class Pattern(nn.Module):
        def forward(self, p, q):
            s = p + q
            return tg.relu(s), {"sum": s, "left": p}

    matcher = matcher_utils(tg).SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(Pattern()))
    first = matcher.match(programs(tg).graph)[0]
    assert first.name_node_map["sum"].name == "add" and first.name_node_map["left"].name == "x"
    with pytest.raises(ValueError, match="must return a dict of names"):
        matcher_utils(tg).SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(lambda p: p + 1))


def test_bad_patterns_are_refused():
    SubgraphMatcher = matcher_utils(tg).SubgraphMatcher
    with pytest.raises(TypeError, match="must be a Graph, not function"):
        SubgraphMatcher(lambda x: x)
    with pytest.raises(ValueError, match="empty pattern"):
        SubgraphMatcher(fx.Graph())
    graph = fx.symbolic_trace(lambda x, y: x + 1).graph
    with pytest.raises(AssertionError, match="nobody uses the pattern's y"):
        SubgraphMatcher(graph)
