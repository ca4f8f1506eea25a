"""Generators in script: given to it or made in it, they draw and end as in eager mode."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def in_place(generator: tg.Generator):
    x = tg.empty(2, 2)
    x.normal_(-1.0, 1.0, generator=generator)
    return x


def two(generator: tg.Generator):
    return tg.rand(2, generator=generator) - tg.rand(2, generator=generator)


def in_branches(generator: tg.Generator):
    x = tg.zeros(3)
    for i in range(5):
        if i % 2 == 0:
            x = x + tg.rand(3, generator=generator) * (i + 1)
        else:
            x.uniform_(0.0, 2.0, generator=generator)
    return x


def where_there_is_one(generator: tg.Generator | None):
    return tg.ones(4).bernoulli(0.5, generator=generator) + tg.rand(4)


def called(generator: tg.Generator):
    return two(generator) + two(generator)


def seeded(generator: tg.Generator):
    first = tg.rand(2, generator=generator)
    state = generator.get_state()
    second = tg.rand(2, generator=generator)
    generator.set_state(state)
    other = generator.clone_state()
    third = tg.rand(2, generator=generator) + tg.rand(2, generator=other)
    generator.manual_seed(7)
    return first, second, third, tg.rand(2, generator=generator), generator.initial_seed()


def loaded(program):
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    return jit.load(file)


def parts(result):
    return [p.tolist() if isinstance(p, tg.Tensor) else p for p in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("program", [in_place, two, in_branches, where_there_is_one, called, seeded])
def test_one_that_is_given_goes_on(program):
    scripted = jit.script(program)
    for run in (scripted, loaded(scripted)):
        given, expected = tg.Generator().manual_seed(3), tg.Generator().manual_seed(3)
        for _ in range(3):
            tg.manual_seed(1)
            found = run(given)
            tg.manual_seed(1)
            assert parts(found) == parts(program(expected))
            assert given.get_state().equal(expected.get_state())


def test_none_is_the_generator_of_the_process():
    tg.manual_seed(1)
    found = jit.script(where_there_is_one)(None)
    tg.manual_seed(1)
    assert found.equal(where_there_is_one(None))


class Noisy(nn.Module):
    def forward(self, x, seed: int):
        generator = tg.Generator()
        first = tg.rand(2, generator=generator)
        generator.manual_seed(seed)
        noise = tg.empty_like(x)
        noise.normal_(0.0, 1.0, generator=generator)
        other = tg.Generator(device="cpu").manual_seed(seed)
        return x * noise, first, tg.rand(2, generator=other), generator.initial_seed()


def test_one_that_a_script_makes_starts_anew_in_each_call():
    scripted, x = jit.script(Noisy()), tg.ones(2, requires_grad=True)
    for run in (scripted, loaded(scripted)):
        for seed in (2, 3):
            assert parts(run(x, seed)) == parts(Noisy()(x, seed))
            found, expected = (tg.autograd.grad(made(x, seed)[0].sum(), x)[0] for made in (run, Noisy()))
            assert found.equal(expected)

    def unknown() -> tg.Tensor:
        generator = tg.Generator()
        generator.seed()
        return tg.rand(64, generator=generator)

    scripted = jit.script(unknown)
    assert not scripted().equal(scripted())


def test_what_a_generator_has_not_is_told():
    def program(generator: tg.Generator):
        return generator.jump()

    with pytest.raises(jit.Error, match="'Generator' object has no attribute or method 'jump' in script; it has"):
        jit.script(program)
