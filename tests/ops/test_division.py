"""fmod, remainder and floor_divide of floating numbers are exact: the same bits as C's fmod, one element at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygrad_ext as tg

DTYPES = {"float32": (np.float32, np.uint32), "float64": (np.float64, np.uint64)}


def fmod(a, b):
    return np.fmod(a, b)


def remainder(a, b):
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def floor_divide(a, b):
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - a.dtype.type(1), quotient)
    down = np.floor(quotient)
    whole = np.where(quotient - down > 0.5, down + a.dtype.type(1), down)
    return np.where(b == 0, a / b, np.where(quotient == 0, np.copysign(a.dtype.type(0), a / b), whole))


def patterns(dtype, count, seed=0):
    """Numbers of all exponents, and around each other: any bits, subnormals, zeros, infinities, NaN, near multiples."""
    kind, word = DTYPES[dtype]
    random = np.random.default_rng(seed)
    anything = random.integers(0, np.iinfo(word).max, count, word, endpoint=True).view(kind)
    other = random.integers(0, np.iinfo(word).max, count, word, endpoint=True).view(kind)
    usual = random.standard_normal(count).astype(kind)
    whole = random.integers(-1000, 1000, count).astype(kind)
    multiple = (usual * whole * kind(2.0) ** random.integers(0, 60, count)).astype(kind)
    beside = np.nextafter(multiple, usual)
    tiny = (usual * np.finfo(kind).tiny).astype(kind)
    edges = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, np.finfo(kind).max], kind), count)
    random.shuffle(edges)
    left = [anything, usual, multiple, beside, tiny, edges, usual, anything, whole, multiple, tiny * 1000, usual]
    right = [other, whole, usual, usual, tiny[::-1], usual, edges, usual, whole[::-1], tiny, usual, usual[::-1]]
    a, b = np.concatenate(left), np.concatenate(right)
    with np.errstate(all="ignore"):  # by quotient, since one large quotient takes its block away from the vector code
        order = np.argsort(np.abs(a / b))
    return a[order], b[order]


def same_bits(got, expected, word):
    both_nan = np.isnan(got) & np.isnan(expected)
    return both_nan | (got.view(word) == expected.view(word))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_has_the_bits_of_the_formula_with_fmod(name, dtype):
    a, b = patterns(dtype, 3000)
    with np.errstate(all="ignore"):
        expected = globals()[name](a, b)
    kind, word = DTYPES[dtype]
    op = getattr(tg, name)
    for got in (op(tg.tensor(a), tg.tensor(b)), op(tg.tensor(a).view(-1, 3).t(), tg.tensor(b).view(-1, 3).t()).t()):
        right = same_bits(got.numpy().reshape(-1), expected, word)
        assert right.all(), (a[~right][:5], b[~right][:5], got.numpy().reshape(-1)[~right][:5], expected[~right][:5])


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_any_two_numbers_divide_exactly(dtype, data):
    kind, word = DTYPES[dtype]
    number = st.floats(width=32 if dtype == "float32" else 64)
    a, b = (np.array([data.draw(number)], kind) for _ in range(2))
    with np.errstate(all="ignore"):
        for rule in (fmod, remainder, floor_divide):
            got = getattr(tg, rule.__name__)(tg.tensor(a), tg.tensor(b)).numpy()
            assert same_bits(got, rule(a, b), word).all(), (rule.__name__, a, b, got)
