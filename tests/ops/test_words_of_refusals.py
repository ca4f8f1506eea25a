"""Refusals that programs for PyTorch look for by their words."""

import pytest

import tinygrad_ext as tg

one, two, whole = tg.ones(3), tg.ones(3, dtype=tg.float64), tg.ones(3, dtype=tg.int32)
imaginary = one + 0j
square, cube, high = tg.ones(2, 2), tg.ones(2, 2, 2), tg.ones(2, 2, dtype=tg.float64)
TARGETS = {
    "nonzero": lambda: tg.nonzero(one, out=tg.ones(3)),
    "mode": lambda: tg.mode(one, out=(whole, whole.long())),
    "quantile": lambda: tg.quantile(one, 0.5, out=tg.tensor(1)),
    "nanquantile": lambda: tg.nanquantile(one, 0.5, out=tg.tensor(1)),
    "heaviside": lambda: tg.heaviside(one, one, out=tg.ones(3) + 0j),
    "float_power": lambda: tg.float_power(one, 2, out=tg.ones(3)),
    "isposinf": lambda: tg.isposinf(one, out=tg.ones(3)),
    "isneginf": lambda: tg.isneginf(one, out=whole.byte()),
    "complex": lambda: tg.complex(one, one, out=tg.ones(3)),
    "polar": lambda: tg.polar(one, one, out=tg.ones(3)),
    "cummax": lambda: tg.cummax(one, 0, out=(whole, whole.long())),
    "logcumsumexp": lambda: tg.logcumsumexp(one, 0, out=two),
}
WORDS = {
    "nonzero": "scalar type Long but got scalar type Float",
    "mode": "expected scalar type 'Float' but got 'Int' for values",
    "quantile": r"quantile\(\) out tensor must be same dtype as the input tensor",
    "nanquantile": r"nanquantile\(\) out tensor must be same dtype as the input tensor",
    "heaviside": "heaviside is not yet implemented for complex tensors",
    "float_power": "dtype Float but the operation's result requires dtype Double",
    "isposinf": "does not support non-boolean outputs",
    "isneginf": "does not support non-boolean outputs",
    "complex": "scalar type ComplexFloat but got scalar type Float for argument 'out'",
    "polar": "scalar type ComplexFloat but got scalar type Float for argument 'out'",
    "cummax": "expected scalar_type Float but found Int",
    "logcumsumexp": "expected scalar_type Float but found Double",
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_of_another_dtype(name):
    with pytest.raises(RuntimeError, match=WORDS[name]):
        TARGETS[name]()


OTHERS = [
    (lambda: tg.histc(whole, min=4, max=1), "max must be larger than min"),
    (lambda: tg.histogram(one, two), "input tensor and bins tensors should have the same dtype"),
    (lambda: tg.heaviside(imaginary, imaginary), "heaviside is not yet implemented for complex tensors."),
    (
        lambda: tg.complex(one, two),
        "Expected object of scalar type Float but got scalar type Double for second argument",
    ),
    (lambda: tg.complex(whole, whole), "Half, Float or Double tensors but got Int and Int"),
    (
        lambda: tg.linalg.eigvals(square * float("inf")),
        "torch.linalg.eig: input tensor should not contain infs or NaNs",
    ),
    (lambda: tg.linalg.lstsq(square, tg.tensor(1.0)), "other must have at least 1 dimension"),
    (lambda: tg.lu_unpack(square, tg.tensor([0, 3], dtype=tg.int32)), r"between 1 and LU.size\(-2\) inclusive"),
    (lambda: tg.einsum("a->... .", one), r"found '.' for the output but an ellipsis \(...\) was already found"),
    (lambda: tg.linalg.multi_dot([cube, square, square]), "the first tensor must be 1D or 2D but got 3D"),
    (lambda: tg.linalg.multi_dot([square, square, cube]), "the last tensor must be 1D or 2D but got 3D"),
    (lambda: tg.linspace(1j, 2, 3, dtype=tg.float64), r"torch.linspace\(\): inferred dtype"),
    (lambda: tg.logspace(1j, 2, 3, dtype=tg.float64), r"torch.logspace\(\): inferred dtype"),
    (lambda: tg.polar(one, two), "Expected object of scalar type Float but got scalar type Double for second argument"),
    (lambda: tg.normal(one, -one), "normal expects all elements of std >= 0.0"),
    (lambda: tg.empty(2).uniform_(-3e38, 3e38), "uniform_ expects to-from <="),
    (lambda: tg.empty(2).uniform_(-1e39, 1), "from is out of bounds for Float"),
]


@pytest.mark.parametrize("call, words", OTHERS, ids=range(len(OTHERS)))
def test_arguments_that_do_not_fit(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


def test_values_and_types_that_do_not_fit():
    with pytest.raises(TypeError, match="expected 'shape' sequence to only contain ints, but got str"):
        tg.unravel_index(tg.tensor([1]), (1, "a"))
    with pytest.raises(ValueError, match="with dtype '.*' into dtype '.*'"):
        tg.asarray(one, dtype=tg.float64, copy=False)
    with pytest.warns(UserWarning, match=r"from is out of bounds \[-16777216, 16777216\]"):
        tg.empty(3).random_(-(2**60), 5)
    for bound in ("from", "to - 1"):
        with pytest.warns(UserWarning, match=f"{bound} is out of bounds"):
            tg.empty(3).random_(-(2**60), 2**60)
