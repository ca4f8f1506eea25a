"""Large operands run through loops of their own, and through walks over rows: with the bits of small ones."""

import numpy as np
import pytest

import tinygrad_ext as tg

N = 1 << 17  # the loops for operands beyond the caches begin at half of it
PIECE = 1000

OPS = {
    "add": lambda x, y: x + y,
    "add with alpha": lambda x, y: tg.add(x, y, alpha=3),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "number": lambda x, y: x * 3,
    "number first": lambda x, y: 3 - x,
    "maximum": tg.maximum,
    "less": tg.lt,
    "neg": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
    "relu": lambda x, y: tg.relu(x),
    "where": lambda x, y: tg.where(x < y, x, y),
    "where with a number": lambda x, y: tg.where(x < y, x, 0),
    "clamp": lambda x, y: x.clamp(-3, 5),
    "in place": lambda x, y: x.clone().add_(y),
    "conversion": lambda x, y: x.to(tg.int32) + y.to(tg.float64),
}


def operands(dtype):
    random = np.random.default_rng(0)
    return [tg.tensor(random.normal(0, 100, N)).to(getattr(tg, dtype)) for _ in range(2)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
@pytest.mark.parametrize("name", OPS)
def test_an_element_has_the_same_bits_in_a_large_operand(name, dtype):
    if dtype == "uint8" and name in ("neg", "clamp", "abs"):
        pytest.skip("says nothing of unsigned numbers")
    f, (x, y) = OPS[name], operands(dtype)
    whole = f(x, y)
    pieces = [f(x[i : i + PIECE], y[i : i + PIECE]) for i in range(0, N, PIECE)]
    assert whole.numpy().tobytes() == tg.cat(pieces).numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_rows_and_columns_are_repeated_over_a_large_matrix(dtype):
    x, y = operands(dtype)
    x, row, column = x.view(256, 512), y[:512], y[:256].view(256, 1)
    assert (x + row).equal(tg.stack([r + row for r in x]))
    assert (x + column).equal(tg.stack([r + c for r, c in zip(x, column)]))
    three = x.view(16, 16, 512)
    assert (three[:, ::2] + row).equal(tg.stack([part[::2] + row for part in three]))


def test_division_by_zero_far_into_a_large_operand_is_found():
    x = tg.ones(N, dtype=tg.int64)
    y = x.clone()
    y[-1] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // y
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.view(256, 512) // y.view(256, 512)[-1]


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "bool", "float16", "complex128"])
def test_a_fill_reaches_every_element(dtype):
    t = tg.zeros(100_003, dtype=getattr(tg, dtype))
    t[1:-1].fill_(1)
    assert t.to(tg.float64 if dtype != "complex128" else tg.complex128).sum().item() == 100_001
    t.view(-1)[::2].fill_(0)
    assert t.to(tg.float64 if dtype != "complex128" else tg.complex128).sum().item() == 50_001


@pytest.mark.parametrize("count", [1000, 1 << 17, (1 << 20) + 7])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_every_second_element_has_the_bits_of_a_dense_operand(dtype, count):
    x, y = (tg.arange(2 * count).remainder(k).add(1).to(getattr(tg, dtype)) for k in (97, 89))
    for op in (tg.neg, tg.square, tg.add, tg.maximum, lambda a, b: tg.addcmul(a, b, a), lambda a, b: a.where(a < b, b)):
        given = (x, y) if op not in (tg.neg, tg.square) else (x,)
        dense, apart = op(*(t[::2].contiguous() for t in given)), op(*(t[::2] for t in given))
        assert apart.is_contiguous() and apart.equal(dense)
        out = tg.zeros(2 * count, dtype=dense.dtype)
        out[::2] = apart
        assert out[::2].equal(dense) and not out[1::2].any()
