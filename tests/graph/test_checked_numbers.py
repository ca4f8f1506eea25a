"""`_check` of numbers that hang on elements: a graph asks again each time it runs, and is not bound to the answer."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, jit, nn


def zeros(x, n):
    k = n.item()
    tg._check_is_size(k, max=10)
    tg._check(k * 2 < 9, lambda: "too many")
    tg._check(k > -9, lambda: f"far too few: {k}")
    tg._check(k <= x.shape[0] + 1)
    return tg.zeros(k) + x.sum()


class Zeros(nn.Module):
    def forward(self, x, n):
        return zeros(x, n)


def exported():
    return export.export(Zeros(), (tg.ones(3), tg.tensor(2)))


def filed(program):
    file = io.BytesIO()
    export.save(program, file)
    return export.load(io.BytesIO(file.getvalue())).module()


def of_fx(program):
    made = program.module()
    made.recompile()
    return made


@pytest.mark.parametrize("form", [lambda p: p.module(), filed, of_fx], ids=["module", "file", "fx"])
def test_an_exported_program_asks_again(form):
    run = form(exported())
    for n in (0, 1, 4):
        assert run(tg.ones(3), tg.tensor(n)).equal(zeros(tg.ones(3), tg.tensor(n)))
    for n, told in ((-1, ">= 0"), (5, "too many"), (20, "<= 10")):
        with pytest.raises(RuntimeError, match=rf"test_checked_numbers.py.*({told})"):
            run(tg.ones(3), tg.tensor(n))


def test_a_condition_that_the_example_breaks_raises_as_ever():
    with pytest.raises(RuntimeError, match="too many"):
        export.export(Zeros(), (tg.ones(3), tg.tensor(7)))
    with pytest.raises(ValueError, match="not that"):
        jit.trace(lambda n: tg._check_value(n.item() > 3, "not that"), tg.tensor(1))


def test_traced_and_compiled_programs_raise_the_programs_own_error():
    for run in (jit.trace(zeros, (tg.ones(3), tg.tensor(2))), tg.compile(zeros, fullgraph=True)):
        assert run(tg.ones(3), tg.tensor(4)).shape == (4,)
        with pytest.raises(RuntimeError, match="too many"):
            run(tg.ones(3), tg.tensor(5))


def test_answers_are_numbers_of_the_graph_and_refused_as_conditions():
    x = tg.arange(3.0)
    traced = jit.trace(lambda x, n: (x * (n.item() > 0), n.item() > 0), (x, tg.tensor(1)))
    assert traced(x, tg.tensor(-1))[0].equal(x * 0) and traced(x, tg.tensor(-1))[1] is False
    for f in (
        lambda n: n if n.item() > 0 else -n,
        lambda n: n * max(n.item(), 2),
        lambda n: n if n.item() in (1, 2) else -n,
        lambda n: tg._check(0 < n.item() < 3),
    ):
        with pytest.raises(RuntimeError, match="reads the elements"):
            jit.trace(f, tg.tensor(1))


def test_outside_of_a_graph_nothing_is_new():
    tg._check(True)
    tg._check_is_size(3, max=3)
    for call in (lambda: tg._check_is_size(-1), lambda: tg._check_is_size(4, "large", max=3), lambda: tg._check(0 > 1)):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(TypeError, match="cond must be a bool"):
        tg._check(tg.ones(1))
