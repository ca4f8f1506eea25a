"""What has one element for a row, or one row for all, is filled or written out, and has the bits of dense operands."""

import numpy as np
import pytest

import tinygrad_ext as tg

SHAPES = [(200,), (1000,), (40_000,), (3, 16), (600, 17), (1100, 100), (5, 7, 33), (2, 600, 20)]
UNARY = [tg.exp, tg.sign, tg.sigmoid, lambda x: x.to(tg.int16), lambda x: x.pow(1.5)]
DTYPES = [tg.float32, tg.float64, tg.bfloat16]


def _bits(t):
    return t.contiguous().view({1: tg.uint8, 2: tg.int16, 4: tg.int32, 8: tg.int64}[t.element_size()]).tolist()


def _values(shape, dtype):
    return tg.tensor(np.random.default_rng(0).uniform(0.1, 3, shape)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_element_for_a_row_has_the_bits_of_the_row(shape, dtype):
    column = _values((*shape[:-1], 1), dtype).expand(shape)
    for op in UNARY:
        assert _bits(op(column)) == _bits(op(column.contiguous()))
    assert _bits(column + column) == _bits(column.contiguous() + column.contiguous())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [2, 3, 8, 15, 16, 17, 31, 32, 33, 64])
def test_short_rows_beside_a_column_or_a_row(width, dtype):
    for rows in (20, 63, 64, 1025):
        x, column, row = _values((rows, width), dtype), _values((rows, 1), dtype), _values((width,), dtype)
        for other in (column, row):
            dense = other.expand(rows, width).contiguous()
            for pair in ((x, other), (other, x)):
                wanted = [dense if t is other else t for t in pair]
                assert _bits(pair[0] / pair[1]) == _bits(wanted[0] / wanted[1])
        assert _bits(tg.addcmul(x, column, row)) == _bits(
            tg.addcmul(x, column.expand(rows, width).contiguous(), row.expand(rows, width).contiguous())
        )
        assert _bits(column * row) == _bits(
            column.expand(rows, width).contiguous() * row.expand(rows, width).contiguous()
        )


def test_what_is_repeated_in_a_part_of_a_larger_tensor_leaves_the_rest():
    whole = tg.zeros(50, 40)
    whole[3:40, 2:30] = tg.arange(37.0).reshape(37, 1)
    wanted = np.zeros((50, 40), "float32")
    wanted[3:40, 2:30] = np.arange(37.0).reshape(37, 1)
    assert whole.tolist() == wanted.tolist()
    tg.exp(tg.zeros(37, 1).expand(37, 28), out=whole[3:40, 2:30])
    wanted[3:40, 2:30] = 1
    assert whole.tolist() == wanted.tolist()


def test_an_error_of_one_element_is_the_error_of_the_row():
    with pytest.raises(RuntimeError, match="divided an integer by zero"):
        tg.ones(3, 1, dtype=tg.int64).expand(3, 100) // tg.zeros(3, 1, dtype=tg.int64).expand(3, 100)
