"""What transforms say of functions that do not return what they have to, in words that programs look for."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func

x = tg.ones(2, 3)
EMPTY = "Expected f to be a function that has non-empty output"
OTHER = r"expected f\(\*primals\) to return only tensors"


@pytest.mark.parametrize("output, words", [(None, EMPTY), ((), EMPTY), (1, OTHER), ("abc", OTHER)])
def test_outputs_are_tensors(output, words):
    with pytest.raises(RuntimeError, match=rf"vjp\(f, \*primals\): {words}"):
        func.vjp(lambda x: output, x)
    with pytest.raises(RuntimeError, match=rf"jvp\(f, primals, tangents\): {words}"):
        func.jvp(lambda x: output, (x,), (x,))
    for jacobian in (func.jacrev, func.jacfwd):
        with pytest.raises(RuntimeError, match=rf"(vjp|jvp).+: {words}"):
            jacobian(lambda x: output)(x)


def test_a_function_with_aux_returns_two():
    for take in (func.grad, func.grad_and_value):
        with pytest.raises(
            RuntimeError, match=r"grad_and_value\(f\)\(\*args\): output of function f should be a tuple"
        ):
            take(lambda x: [x.sum(), x], has_aux=True)(x)
    with pytest.raises(RuntimeError, match=r"vjp\(f, \*primals\): output of function f should be a tuple"):
        func.vjp(lambda x: [x, x], x, has_aux=True)


def test_primals_are_tensors():
    with pytest.raises(RuntimeError, match="Expected primals to only contain Tensors, got unsupported type float"):
        func.jvp(lambda x: x, (1.0,), (1.0,))


@pytest.mark.parametrize("returned, words", [((x, (None,)), "returned an incompatible"), (x, "to have two returns")])
def test_rules_return_outputs_and_their_dimensions(returned, words):
    class Zeros(tg.autograd.Function):
        generate_vmap_rule = False

        @staticmethod
        def forward(x):
            return x * 0

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return returned

    with pytest.raises(RuntimeError, match=words):
        func.vmap(Zeros.apply)(x)
