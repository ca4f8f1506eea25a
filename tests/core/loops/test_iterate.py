"""An element's value does not depend on how the walk over strided operands brings it to a loop."""

import numpy as np
import pytest

import tinygrad_ext as tg

DTYPES = ["uint8", "bool", "bfloat16", "int32", "float32", "float64", "complex64", "complex128"]
# on both sides of the edges of a tile, and of what is turned at once
SHAPES = [(15, 16), (16, 16), (17, 130), (65, 100), (100, 300), (3, 70, 33), (20, 2, 30)]


def transposed(x):
    return x.mT.contiguous().mT


def outside_in(x):
    """The first dimension lies closest."""
    return x.movedim(0, -1).contiguous().movedim(-1, 0)


def spaced(x):
    """Every second element of rows."""
    wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1])
    wide[..., ::2] = x
    return wide[..., ::2]


def spaced_and_transposed(x):
    return spaced(x.mT).mT


def within(x):
    """Rows of a larger matrix, the other way, from an odd place on."""
    wide = x.new_zeros(*x.shape[:-2], x.shape[-1] + 5, x.shape[-2] + 7)
    wide[..., 3:-2, 1:-6] = x.mT
    return wide[..., 3:-2, 1:-6].mT


def repeated(x):
    return x[..., :1, :].expand(x.shape)


LAYOUTS = [transposed, outside_in, spaced, spaced_and_transposed, within]


def operand(shape, dtype, seed):
    numbers = np.random.default_rng(seed).normal(0, 50, shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * numbers[::-1]
    return tg.tensor(np.abs(numbers) if dtype == "uint8" else numbers).to(getattr(tg, dtype))


def bits(x):
    return x.contiguous().view(tg.uint8).numpy().tobytes()


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_copy_keeps_every_element(dtype, shape, layout):
    x = operand(shape, dtype, 0)
    assert bits(layout(x)) == bits(x)
    assert bits(layout(x).clone()) == bits(x)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_operands_in_any_layout_give_the_same_bits(dtype, shape, layout):
    x, y = operand(shape, dtype, 1), operand(shape, dtype, 2)
    mask = operand(shape, "float32", 3) > 0
    assert bits(x + layout(y)) == bits(x + y)
    assert bits(layout(x) * y) == bits(x * y)
    assert bits(tg.where(layout(mask), layout(x), y)) == bits(tg.where(mask, x, y))
    assert bits(tg.where(mask, layout(x), repeated(y))) == bits(tg.where(mask, x, repeated(y).contiguous()))
    if x.is_floating_point() or x.is_complex():
        weight = operand(shape, dtype, 4)
        assert bits(tg.lerp(x, layout(y), layout(weight))) == bits(tg.lerp(x, y, weight))
        assert bits(x.exp().to(dtype=tg.complex64) + layout(y)) == bits(x.exp().to(dtype=tg.complex64) + y)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_targets_in_any_layout_are_written_alike(layout):
    x, y = operand((65, 100), "float32", 1), operand((65, 100), "float32", 2)
    into = layout(x)
    into += y
    assert bits(into) == bits(x + y)
    into = layout(x)
    tg.mul(x, y, out=into)
    assert bits(into) == bits(x * y)
    assert bits(layout(x).add_(layout(y))) == bits(x + y)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dim", [0, 1])
def test_tables_of_indices_stay_in_their_places(layout, dim):
    x, source = operand((65, 100), "float32", 1), operand((65, 100), "float32", 2)
    index = tg.tensor(np.random.default_rng(5).integers(0, 65, (65, 100)))
    assert bits(tg.gather(layout(x), dim, layout(index))) == bits(tg.gather(x, dim, index))
    assert bits(layout(x).scatter_add(dim, layout(index), layout(source))) == bits(x.scatter_add(dim, index, source))
    assert bits(layout(x).scatter_(dim, layout(index), layout(source))) == bits(x.scatter(dim, index, source))


def test_parts_of_complex_numbers_are_operands():
    x, y = operand((30, 50), "complex64", 1), operand((30, 50), "float32", 2)
    assert bits(x.real * y + x.imag) == bits(x.real.contiguous() * y + x.imag.contiguous())


def test_a_failure_in_a_turned_operand_is_found():
    x, y = operand((65, 300), "int32", 1), tg.ones(300, 65, dtype=tg.int32)
    y[-1, -1] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // y.t()


@pytest.mark.parametrize("dtype", [tg.bool, tg.uint8, tg.int16, tg.float32, tg.float64, tg.complex128], ids=str)
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 33, 500])
def test_rows_are_turned_end_for_end(n, dtype):
    x = tg.randint(0, 100, (3, n)).to(dtype)
    assert tg.equal(x[1].flip(0), x[1][tg.arange(n - 1, -1, -1)])
    assert tg.equal(x.flip(1)[:, 1:], x[:, tg.arange(n - 1, -1, -1)][:, 1:])
    assert tg.equal(x.flip(0, 1), x.reshape(-1).flip(0).reshape(3, n))
