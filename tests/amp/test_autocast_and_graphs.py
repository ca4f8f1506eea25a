"""What was traced, scripted or compiled outside of autocast gives within it what the program gives there."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit

X = tg.linspace(-1, 1, 9).view(3, 3)


def program(x):
    return (x @ x).exp() + x


WAYS = {
    "trace": lambda: jit.trace(program, (X,)),
    "script": lambda: jit.script(program),
    "compile": lambda: tg.compile(program),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_within_autocast(way):
    made = WAYS[way]()
    made(X)
    with tg.autocast("cpu", dtype=tg.bfloat16):
        found, expected = made(X), program(X)
    assert found.dtype == expected.dtype and found.equal(expected) and not found.equal(program(X))
    assert made(X).equal(program(X))


def test_what_was_traced_within_autocast_is_the_program_outside():
    with tg.autocast("cpu", dtype=tg.bfloat16):
        traced = jit.trace(program, (X,), check_trace=False)
        assert traced(X).equal(program(X))
    assert traced(X).equal(program(X))
