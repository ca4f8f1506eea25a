"""What is replaced and what is left, and what filters and modules say to it."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn
from tinygrad_ext.fx.subgraph_rewriter import replace_pattern_with_filters


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.act, self.two = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)

    def forward(self, x):
        return self.two(self.act(self.one(x)))


class Pattern(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(x)


def test_modules_of_one_class_match():
    made, x = fx.symbolic_trace(Net()), tg.randn(3, 2)
    matches = fx.replace_pattern(made, fx.symbolic_trace(Pattern()), lambda x: tg.sigmoid(x))
    assert len(matches) == 1 and made(x).equal(made.two(tg.sigmoid(made.one(x))))


def test_filters_and_literals():
    def f(x):
        return x.clamp(0, 1) + x.clamp(0, 2)

    pattern, replacement = (lambda a: a.clamp(0, 2)), (lambda a: a.neg())
    made = fx.symbolic_trace(f)
    found = replace_pattern_with_filters(made, pattern, replacement, ignore_literals=True)
    assert len(found) == 2 and [len(m.replacements) for m in found] == [1, 1]
    made = fx.symbolic_trace(f)
    assert not replace_pattern_with_filters(made, pattern, replacement, [lambda match, graph, pattern: False])
    assert len(replace_pattern_with_filters(made, pattern, replacement, [lambda *_: True])) == 1
    assert made(tg.ones(1)).item() == 0


def test_several_results_are_replaced():
    def f(x, y):
        return (x + y) * (x - y)

    made = fx.symbolic_trace(f)
    fx.replace_pattern(made, lambda a, b: (a + b, a - b), lambda a, b: (a.exp(), b.exp()))
    assert made(tg.zeros(1), tg.zeros(1)).item() == 1 and "exp" in made.code and "-" not in made.code


def test_arguments_are_as_many():
    with pytest.raises(AssertionError, match="the pattern has 1 arguments, and the replacement 2"):
        fx.replace_pattern(fx.symbolic_trace(lambda x: x.exp()), lambda a: a.exp(), lambda a, b: a)


def test_two_names_of_a_pattern_are_two_nodes():
    traced = fx.symbolic_trace(lambda x, y: tg.relu(x + y) * tg.relu(x + x))
    (match,) = fx.replace_pattern(traced, lambda a, b: tg.relu(a + b), lambda a, b: tg.tanh(a - b))
    x, y = tg.tensor(2.0), tg.tensor(0.5)
    assert match.anchor.name == "relu" and tg.equal(traced(x, y), tg.tanh(x - y) * 4)
    traced = fx.symbolic_trace(lambda x: tg.relu(x + x))
    assert fx.replace_pattern(traced, lambda a: a + a, lambda a: a * 3) and traced(x) == 6


def test_attributes_of_a_replacement_come_with_it():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.tanh, self.scale = nn.Tanh(), nn.Parameter(tg.full((2,), 3.0))

        def forward(self, x):
            return self.tanh(x) * self.scale

    other, made, x = Other(), fx.symbolic_trace(Net()), tg.randn(3, 2)
    assert len(fx.replace_pattern(made, Pattern(), other)) == 1
    assert tg.equal(made(x), made.two(other(made.one(x))))
    assert made.tanh is not other.tanh and made.scale is not other.scale and not hasattr(made, "act")


def test_arguments_of_ops_match_however_they_are_passed():
    pool = tg.ops.aten.max_pool2d.default

    def pattern(x, size):
        return pool(x, size, padding=[0, 0])

    made = fx.symbolic_trace(lambda x: pool(x, [2, 2]) + pool(x, kernel_size=(2, 2), stride=2))
    found = replace_pattern_with_filters(made, pattern, lambda x, size: tg.neg(x))
    assert len(found) == 1 and "neg" in made.code


def test_a_replacement_may_be_made_for_each_match():
    def replacement(match, graph, pattern):
        number = next(n for n in match.nodes_map.values() if isinstance(n, float))
        return fx.symbolic_trace(lambda x, y: x - number if number > 2 else x * number)

    made, x = fx.symbolic_trace(lambda x: tg.sin(x + 3.0) + (x + 1.0).cos()), tg.ones(2)
    found = replace_pattern_with_filters(
        made, lambda x, y: tg.sin(x + y), match_filters=[lambda *_: True], replacement_callback=replacement
    )
    assert len(found) == 1 and tg.equal(made(x), x - 3 + (x + 1.0).cos())
    with pytest.raises(AssertionError, match="give one of"):
        replace_pattern_with_filters(made, Pattern())
