"""Random ops under vmap: refused, different for each sample, or the same for all."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import grad, jacfwd, vmap

X = tg.rand(4, 6) * 0.8 + 0.1

DRAWS = {
    "rand": lambda x: tg.rand(5),
    "randn": lambda x: tg.randn(5, 2),
    "randint": lambda x: tg.randint(100, (5,)),
    "randperm": lambda x: tg.randperm(20),
    "normal": lambda x: tg.normal(0.0, 1.0, (5,)),
    "normal of a std without dimensions": lambda x: tg.normal(tg.zeros(3), tg.tensor(2.0)),
    "rand_like": lambda x: tg.rand_like(x),
    "randn_like": lambda x: tg.randn_like(x),
    "dropout": lambda x: tg.nn.functional.dropout(x, 0.5),
    "uniform_": lambda x: x.new_empty(7).uniform_(),
    "normal_": lambda x: tg.zeros_like(x).normal_(),
    "exponential_": lambda x: tg.zeros_like(x).exponential_(),
    "bernoulli_": lambda x: tg.zeros(1, 40).expand(2, 40).add(x[0] * 0).bernoulli_(0.5),
}
BY_VALUE = {
    "bernoulli": lambda x: tg.bernoulli(x.repeat(8)),
    "multinomial": lambda x: tg.multinomial(x, 40, replacement=True),
    "normal of means": lambda x: tg.normal(x, 1.0),
}


@pytest.mark.parametrize("name", {**DRAWS, **BY_VALUE})
def test_drawing_is_refused_unless_it_was_asked_for(name):
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap({**DRAWS, **BY_VALUE}[name])(X)


@pytest.mark.parametrize("name", {**DRAWS, **BY_VALUE})
def test_different_samples_draw_different_numbers(name):
    rows = vmap({**DRAWS, **BY_VALUE}[name], randomness="different")(X)
    assert len({tuple(row.flatten().tolist()) for row in rows}) == 4


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers_for_all_are_those_drawn_outside(name):
    ones = tg.ones(4, 6)
    tg.manual_seed(5)
    rows = vmap(DRAWS[name], randomness="same")(ones)
    tg.manual_seed(5)
    once = DRAWS[name](ones[0])
    assert all(tg.equal(row, once) for row in rows)


@pytest.mark.parametrize("name", ["rand", "randint", "randperm", "rand_like", "uniform_", "multinomial", "bernoulli"])
def test_different_numbers_are_those_of_a_loop_where_the_stream_has_no_blocks(name):
    f = {**DRAWS, **BY_VALUE}[name]
    tg.manual_seed(7)
    rows = vmap(f, randomness="different")(X)
    tg.manual_seed(7)
    assert tg.equal(rows, tg.stack([f(row) for row in X]))


@pytest.mark.parametrize("name", BY_VALUE)
def test_the_same_numbers_cannot_hang_on_what_differs(name):
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        vmap(BY_VALUE[name], randomness="same")(X)


def test_what_is_written_over_does_not_decide_what_is_drawn():
    chances = tg.full((6,), 0.5)
    tg.manual_seed(5)
    rows = vmap(lambda x: x.clone().bernoulli_(chances), randomness="same")(X)
    tg.manual_seed(5)
    once = X[0].clone().bernoulli_(chances)
    assert all(tg.equal(row, once) for row in rows)
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        vmap(lambda x, p: x.clone().bernoulli_(p), randomness="same")(X, X)


def test_drawing_into_what_all_share():
    shared = tg.zeros(3)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda x: x + shared.normal_()[0], randomness="different")(X)
    vmap(lambda x: x + shared.normal_()[0], randomness="same")(X)
    assert shared.any()


def test_dropout_has_a_gradient_for_each_sample():
    f = lambda x: tg.nn.functional.dropout(x, 0.5).sum()
    slopes = vmap(grad(f), randomness="different")(tg.ones(50, 40))
    assert set(slopes.flatten().tolist()) == {0.0, 2.0}
    assert jacfwd(lambda x: tg.nn.functional.dropout(x, 0.5), randomness="same")(X[0]).shape == (6, 6)


def test_an_unknown_mode_is_told():
    with pytest.raises(RuntimeError, match="'error', 'different', or 'same'. Got other"):
        vmap(tg.sin, randomness="other")
