"""Reductions, scans, counts and conversions give the bits that they give in every other layout and length."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused


def _bits(t):
    return t.contiguous().view({1: tg.uint8, 2: tg.int16, 4: tg.int32, 8: tg.int64}[t.element_size()]).tolist()


def _values(shape, dtype):
    return tg.tensor(np.random.default_rng(0).uniform(0.1, 3, shape)).to(dtype)


@pytest.mark.parametrize("n", [5, 9, 16, 24, 32, 33, 64, 65, 100, 127, 128, 150, 2049])
def test_reductions_of_short_rows_have_the_bits_of_columns(n):
    for dtype in (tg.float32, tg.float64, tg.int64, tg.uint8):
        x = (_values((300, n), tg.float64) * 50).to(dtype)
        columns = x.t().contiguous()
        for op in (tg.sum, tg.prod, tg.amax, tg.amin, tg.any, tg.all):
            assert _bits(op(x, 1)) == _bits(op(columns, 0))
            assert _bits(op(x[:7], 1)) == _bits(op(columns[:, :7], 0))
        assert tg.amax(x, 1).tolist() == x.numpy().max(1).tolist()
        assert x.argmax(1).tolist() == x.numpy().argmax(1).tolist()
        if dtype.is_floating_point:
            assert _bits(x.nansum(1)) == _bits(columns.nansum(0))
            for p in (0, 1, 2, 3, -1.5, float("inf")):
                assert _bits(x.norm(p, dim=1)) == _bits(columns.norm(p, dim=0))
            for at in (0, n // 2, n - 1):
                y = x.clone()
                y[4, at] = float("nan")
                for best in (y.amin(1), y.amax(1), (-y).amax(1)):
                    assert [k for k, v in enumerate(best.isnan().tolist()) if v] == [4]
                assert y.argmax(1)[4].item() == at


@pytest.mark.parametrize("dtype", [tg.bool, tg.uint8, tg.int16, tg.int32, tg.int64, tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("n", [1, 3, 4, 5, 17, 1000])
def test_one_line_is_scanned_as_lines_beside_each_other(n, dtype):
    x = (_values((n, 9), tg.float64) * 3).to(dtype)
    for op in (tg.cumsum, tg.cumprod):
        columns = op(x, 0)
        for k in (0, 4, 8):
            assert _bits(op(x[:, k].contiguous(), 0)) == _bits(columns[:, k]) == _bits(op(x[:, k], 0))
        assert _bits(op(x.t().contiguous(), 1).t()) == _bits(columns)


@pytest.mark.parametrize("dtype", [tg.uint8, tg.int8, tg.int16, tg.int32, tg.int64], ids=str)
def test_numbers_of_every_dtype_and_stride_are_counted(dtype):
    for n in (1, 3, 511, 512, 513, 2050):
        values = np.random.default_rng(n).integers(0, 100, 2 * n)
        weights = np.random.default_rng(n).uniform(0, 1, 2 * n)
        x = tg.tensor(values).to(dtype)
        for part in (slice(None), slice(None, None, 2), slice(1, n)):
            assert x[part].bincount().tolist() == np.bincount(values[part]).tolist()
            assert x[part].bincount(minlength=3000).tolist() == np.bincount(values[part], minlength=3000).tolist()
            summed = x[part].bincount(tg.tensor(weights)[part]).tolist()
            assert summed == np.bincount(values[part], weights[part]).tolist()
    with pytest.raises(RuntimeError, match="the number 7 lies outside of 5 counts"):
        fused._bincount(tg.tensor([1] * 600 + [7]).to(dtype), None, 5)


@pytest.mark.parametrize("source", [tg.float32, tg.float64, tg.bfloat16], ids=str)
def test_floats_beyond_integers_convert_alike_wherever_they_stand(source):
    far = [float("nan"), float("inf"), -float("inf"), 3e9, -3e9, -(2.0**31), 2.0**31, 1e19, -1.5, 300.7]
    for target in (tg.uint8, tg.int8, tg.int16, tg.int32):
        alone = [tg.tensor([v], dtype=tg.float64).to(source).to(target).item() for v in far]
        x = tg.zeros(1200, dtype=source)
        at = list(range(5, 1200, 117))[: len(far)]
        x[tg.tensor(at)] = tg.tensor(far, dtype=tg.float64).to(source)
        got, apart = x.to(target), tg.stack([x, x], 1)[:, 0].to(target)
        assert got[tg.tensor(at)].tolist() == alone == apart[tg.tensor(at)].tolist()
        assert (got != 0).sum().item() == sum(v != 0 for v in alone)


def test_doubles_become_halves_by_way_of_float32_in_every_layout():
    x = _values((1500,), tg.float64) * 10.0 ** tg.arange(-9, 6, dtype=tg.float64).repeat(100)
    assert _bits(x.half()) == _bits(x.float().half()) == _bits(tg.stack([x, x], 1)[:, 1].half())
    assert _bits(x[:3].half()) == _bits(x.half()[:3])


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.int16, tg.complex64], ids=str)
@pytest.mark.parametrize("n", [2, 8, 31, 32, 33, 64, 100, 255, 256, 257])
def test_rows_beside_one_row_for_all_or_a_column(n, dtype):
    g = np.random.default_rng(n)
    for rows in (1, 2, 3, 4, 5, 33, 130):
        table = tg.tensor(g.integers(1, 90, (3, rows, n))).to(dtype)
        row, each, column = table[0, 0].clone(), table[:, :1].clone(), table[:, :, :1].clone()
        hosts = {"t": table.numpy(), "row": row.numpy(), "each": each.numpy(), "column": column.numpy()}
        ours = {"t": table, "row": row, "each": each, "column": column}
        for text in ("t + row", "row - t", "t * each", "t + column", "t * row + column", "t[1:] + each[1:]"):
            np.testing.assert_array_equal(eval(text, ours).numpy(), eval(text, hosts))
        mixed = tg.addcmul(table, row.expand(3, rows, n), column.expand(3, rows, n))
        np.testing.assert_array_equal(mixed.numpy(), hosts["t"] + hosts["row"] * hosts["column"])
        changed = table.clone()
        changed.add_(each).mul_(row)
        np.testing.assert_array_equal(changed.numpy(), (hosts["t"] + hosts["each"]) * hosts["row"])
        if dtype is not tg.complex64:
            picked = tg.where(table > row, table, column)
            np.testing.assert_array_equal(
                picked.numpy(), np.where(hosts["t"] > hosts["row"], hosts["t"], hosts["column"])
            )
            np.testing.assert_array_equal(tg.maximum(row, table).numpy(), np.maximum(hosts["row"], hosts["t"]))
