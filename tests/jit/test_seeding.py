"""Generators that a traced program makes, seeds, reads and sets give the numbers of eager mode at each call."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph

OUTSIDE = tg.Generator()


def seeded(x):
    tg.manual_seed(3)
    return x + tg.rand(2)


def forked(x):
    with tg.random.fork_rng():
        tg.manual_seed(5)
        a = tg.rand(2)
    return x + a, tg.rand(2)


def set_back(x):
    state = tg.get_rng_state()
    a = tg.nn.functional.dropout(x, 0.5)
    tg.set_rng_state(state)
    return a, tg.nn.functional.dropout(x, 0.5)


def made_inside(x):
    generator = tg.Generator()
    return x + tg.rand(2, generator=generator), tg.rand(2, generator=tg.Generator().manual_seed(2))


def cloned(x):
    return x + tg.rand(2, generator=OUTSIDE.clone_state())


def seeded_outside(x):
    OUTSIDE.manual_seed(7)
    return x + tg.rand(2, generator=OUTSIDE)


@jit.script
def scripted(x):
    tg.manual_seed(4)
    return x + tg.rand(2)


PROGRAMS = [seeded, forked, set_back, made_inside, cloned, seeded_outside, lambda x: scripted(x) * 2]


def flat(result):
    return result if isinstance(result, tuple) else (result,)


def run(program, x):
    """Results, gradient, and where the generators stand."""
    tg.manual_seed(11)
    OUTSIDE.manual_seed(12)
    x = x.detach().requires_grad_()
    results = flat(program(x))
    sum(r.sum() for r in results if r.requires_grad).backward()
    return [*results, x.grad, tg.get_rng_state(), OUTSIDE.get_state()]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("way", [lambda f: jit.trace(f, (tg.ones(2),)), tg.compile], ids=["trace", "compile"])
def test_same_numbers_at_each_call(program, way):
    made = way(program)
    for _ in range(3):
        for a, b in zip(run(program, tg.ones(2)), run(made, tg.ones(2)), strict=True):
            assert a.equal(b)


@pytest.mark.parametrize("program", PROGRAMS[:4], ids=lambda p: p.__name__)
def test_as_text_and_from_files(program):
    traced, file = jit.trace(program, (tg.ones(2),)), io.BytesIO()
    assert Graph.parse(str(traced.graph)) == traced.graph
    jit.save(traced, file)
    file.seek(0)
    loaded = jit.load(file)
    tg.manual_seed(1)
    expected = flat(program(tg.ones(2)))
    tg.manual_seed(1)
    assert all(a.equal(b) for a, b in zip(expected, flat(loaded(tg.ones(2))), strict=True))


def test_tracing_changes_no_generator():
    tg.manual_seed(3)
    before = tg.get_rng_state()
    jit.trace(seeded, (tg.ones(2),))
    assert tg.get_rng_state().equal(before)


@pytest.mark.parametrize("name", ["seed", "initial_seed"])
def test_reading_a_seed_is_refused_with_the_line(name):
    with pytest.raises(RuntimeError, match=rf"{name}\(\) of a generator is not captured.*test_seeding\.py:\d+"):
        jit.trace(lambda x: x * getattr(tg, name)(), (tg.ones(2),))
