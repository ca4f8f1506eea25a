"""Full reductions of matrices that lie turned, apart or repeat a row have the bits of rows in order."""

import pytest

import tinygrad_ext as tg

DTYPES = (tg.bool, tg.int16, tg.int64, tg.float16, tg.float32, tg.float64, tg.complex64, tg.complex128)
SHAPES = ((32, 2049), (300, 1000), (301, 999), (2100, 33), (40, 17000), (1024, 1024), (16, 64))
OPS = (tg.sum, tg.prod, tg.linalg.vector_norm, tg.count_nonzero)


def _bits(t):
    return t.numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_turned_matrices(shape, dtype):
    tg.manual_seed(0)
    before = tg.get_num_threads()
    x = (tg.randn(shape) * 2).to(tg.int64 if dtype == tg.int64 else tg.float32).to(dtype)
    turned, apart = x.t().contiguous().t(), tg.stack([x, x], -1).flatten(-2)[..., ::2]
    row = x[:1].expand(shape)
    repeated = row.contiguous()
    for op in OPS:
        if op is tg.linalg.vector_norm and not (dtype.is_floating_point or dtype.is_complex):
            continue
        if dtype == tg.float16 and op is tg.prod:
            continue
        wanted = _bits(op(x))
        for threads in (1, 2):
            tg.set_num_threads(threads)
            assert _bits(op(turned)) == wanted == _bits(op(apart))
            assert _bits(op(row)) == _bits(op(repeated))
    tg.set_num_threads(before)


@pytest.mark.parametrize("times", [1, 2, 3, 7, 64, 1000])
def test_repeated_integers_wrap_as_those_written_out(times):
    tg.manual_seed(1)
    x = tg.randint(-(2**62), 2**62, (5, 1, 40))
    y = x.expand(5, times, 40)
    for dims in ((0, 1, 2), (1,), (1, 2), (0, 1)):
        assert _bits(y.sum(dims)) == _bits(y.contiguous().sum(dims))
        assert _bits(tg.count_nonzero(y, dims)) == _bits(tg.count_nonzero(y.contiguous(), dims))
    assert y.prod().item() == y.contiguous().prod().item()
    assert _bits(y.prod(1)) == _bits(y.contiguous().prod(1))
    assert y[:, :0].sum().item() == 0 and y[:, :0].prod().item() == 1
