"""Functions with some of their arguments given, called in script."""

import functools

import tinygrad_ext as tg


def _scaled(x: tg.Tensor, by: float):
    return x * by


def _compiled(function):
    def inner(x):
        return function(x) + 1

    return tg.jit.script(inner)


def test_a_partial_of_an_op_or_a_function_is_called():
    x = tg.tensor([1.0, 3])
    assert _compiled(functools.partial(tg.pow, exponent=2))(x).tolist() == [2, 10]
    assert _compiled(functools.partial(_scaled, by=0.5))(x).tolist() == [1.5, 2.5]
    assert _compiled(functools.partial(tg.exp))(x).allclose(x.exp() + 1)
