"""Fourier transforms of every length against NumPy, in both precisions, along every dimension; laws; wrong calls."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext import jit

# powers, mixed factors, primes of a step and beyond, lengths that are cut in two, lengths by a chirp or by several
LENGTHS = [
    *range(1, 70),
    97,
    111,
    121,
    127,
    128,
    134,
    169,
    256,
    343,
    360,
    961,
    1000,
    1009,
    1016,
    1024,
    2046,
    4096,
    4192,
    6000,
    6054,
    16384,
    30030,
    65536,
]
DRAWN = np.random.default_rng(5)


def pairs(*shape):
    return DRAWN.uniform(-1, 1, shape) + 1j * DRAWN.uniform(-1, 1, shape)


def close(got, want, dtype):
    """Errors grow as the root of the logarithm of the length; measured beside the root of the mean square."""
    eps = {tg.complex64: 1.2e-7, tg.float32: 1.2e-7, tg.complex128: 2.3e-16, tg.float64: 2.3e-16}[dtype]
    assert got.dtype == dtype and got.shape == want.shape
    size = np.sqrt(np.mean(np.abs(want) ** 2)) or 1
    assert np.abs(got.numpy() - want).max() <= 16 * eps * size * max(1, np.log2(want.size)), want.shape


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n, dtype):
    real = tg.float32 if dtype == tg.complex64 else tg.float64
    for rows in (1, 3):
        x = tg.tensor(pairs(rows, n)).to(dtype)
        wide = x.numpy().astype(complex)
        close(tg.fft.fft(x), np.fft.fft(wide), dtype)
        close(tg.fft.ifft(x, norm="forward"), np.fft.ifft(wide, norm="forward"), dtype)
        r = x.real.contiguous()
        close(tg.fft.rfft(r), np.fft.rfft(wide.real), dtype)
        close(tg.fft.irfft(x, 2 * n - 1, norm="forward"), np.fft.irfft(wide, 2 * n - 1, norm="forward"), real)
        if n > 1:
            close(tg.fft.irfft(x, norm="forward"), np.fft.irfft(wide, norm="forward"), real)


@pytest.mark.parametrize(
    "shape",
    [
        (20, 3),
        (17, 33),
        (64, 40),
        (37, 9),
        (111, 18),
        (4192, 2),
        (130, 8),
        (5000, 9),
        (3, 48, 2),
        (2, 300, 16),
        (2, 25, 3, 7),
    ],
)
def test_along_other_dimensions(shape):
    x = tg.tensor(pairs(*shape))
    for dim in range(len(shape)):
        close(tg.fft.fft(x, dim=dim), np.fft.fft(x.numpy(), axis=dim), tg.complex128)
        close(tg.fft.rfft(x.real, dim=dim), np.fft.rfft(x.real.numpy(), axis=dim), tg.complex128)
    close(tg.fft.ifftn(x), np.fft.ifftn(x.numpy()), tg.complex128)
    assert tg.fft.fft(x.mT, dim=-2).equal(tg.fft.fft(x, dim=-1).mT)


@given(st.integers(1, 200), st.integers(1, 5), st.integers(0, 10**6))
@settings(deadline=None, max_examples=80)
def test_laws(n, rows, seed):
    drawn = np.random.default_rng(seed)
    x, y = (tg.tensor(drawn.normal(size=(rows, n)) + 1j * drawn.normal(size=(rows, n))) for _ in range(2))
    fx, fy = tg.fft.fft(x), tg.fft.fft(y)
    assert tg.allclose(tg.fft.ifft(fx), x, atol=1e-12)
    assert tg.allclose((fx.abs() ** 2).sum(), (x.abs() ** 2).sum() * n)
    assert tg.allclose(tg.fft.fft(x * 2 + y), fx * 2 + fy, atol=1e-11)
    assert tg.allclose(tg.fft.fft(x, norm="ortho"), fx / n**0.5, atol=1e-12)
    turned = tg.polar(tg.ones(n, dtype=tg.float64), -2 * np.pi * tg.arange(n, dtype=tg.float64) / n)
    assert tg.allclose(tg.fft.fft(x.roll(1, -1)), fx * turned, atol=1e-10)
    assert tg.allclose(tg.fft.hfft(tg.fft.ihfft(x.real), n), x.real, atol=1e-12)


def test_bits_do_not_depend_on_threads_or_strides():
    before = tg.get_num_threads()
    x = tg.randn(6, 1 << 15, dtype=tg.complex64)
    try:
        found = []
        for n in (1, 2, 3):
            tg.set_num_threads(n)
            found.append((tg.fft.fft(x), tg.fft.fft(x[0]), tg.fft.fft(x, dim=0), tg.fft.rfft(x.real)))
    finally:
        tg.set_num_threads(before)
    assert all(a.equal(b) for other in found[1:] for a, b in zip(found[0], other, strict=True))
    strided = tg.empty(6, 1 << 16, dtype=tg.complex64)[:, ::2].copy_(x)
    assert tg.fft.fft(strided).equal(found[0][0])


def test_tables_are_made_once_and_dropped_while_threads_use_them():
    def work(seed):
        drawn = np.random.default_rng(seed)
        for n in drawn.integers(2, 700, 60):
            x = drawn.normal(size=n) + 0j
            if not np.allclose(tg.fft.fft(tg.tensor(x)).numpy(), np.fft.fft(x)):
                wrong.append(n)

    wrong = []
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_size_of_minus_one_leaves_a_dimension():
    x = tg.tensor(pairs(3, 4))
    assert tg.fft.fft2(x, s=(-1, 2)).equal(tg.fft.fft2(x, s=(3, 2)))
    assert tg.fft.irfft2(x, s=(2, -1)).equal(tg.fft.irfft2(x, s=(2, 6)))


def test_integers_are_computed_in_the_default_dtype_and_halves_are_refused():
    assert tg.fft.fft(tg.arange(4)).dtype == tg.complex64
    assert tg.fft.rfft(tg.tensor([True, False])).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Half"):
        tg.fft.fft(tg.ones(3, dtype=tg.float16))
    with pytest.raises(IndexError, match="no dimensions"):
        tg.fft.fft(tg.tensor(1.0), dim=0)


def test_a_trace_takes_other_lengths():
    def low_pass(x):
        spectrum = tg.fft.rfft(x)
        return tg.fft.irfft(spectrum * (tg.fft.rfftfreq(x.shape[-1]) < 0.2), x.shape[-1])

    traced = jit.trace(low_pass, (tg.randn(2, 16),))
    for n in (16, 8, 15, 100):
        x = tg.randn(3, n, requires_grad=True)
        assert traced(x).equal(low_pass(x))
        (got,), (want,) = (tg.autograd.grad((f(x) ** 2).sum(), x) for f in (traced, low_pass))
        assert tg.allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("n", [126, 128, 143, 144, 192, 240, 254, 256, 257, 384, 1000, 1022, 1023, 1024, 1500])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_a_batch_are_transformed_alike_whatever_fills_the_lanes(dtype, n, rows):
    random = np.random.default_rng(n)
    x = random.normal(size=(rows, 2 * n)).astype(dtype)
    pairs = tg.view_as_complex(tg.tensor(x).view(rows, n, 2))
    tolerance = {"rtol": 0, "atol": (2e-6 if dtype == "float32" else 1e-14) * n}
    for norm in ("backward", "ortho"):
        np.testing.assert_allclose(
            tg.fft.fft(pairs, norm=norm).numpy(), np.fft.fft(pairs.numpy(), norm=norm), **tolerance
        )
        np.testing.assert_allclose(
            tg.fft.ifft(pairs, norm=norm).numpy(), np.fft.ifft(pairs.numpy(), norm=norm), **tolerance
        )
    real = tg.tensor(x)
    half = tg.fft.rfft(real)
    np.testing.assert_allclose(half.numpy(), np.fft.rfft(x), **tolerance)
    np.testing.assert_allclose(tg.fft.irfft(half, 2 * n).numpy(), x, **tolerance)
    assert half[:0].shape == tg.fft.rfft(real[:0]).shape
    columns = tg.fft.fft(pairs.t().contiguous(), dim=0)
    np.testing.assert_allclose(columns.numpy(), np.fft.fft(pairs.numpy()).T, **tolerance)


@pytest.mark.parametrize("n", [2, 4, 6, 10, 16, 22, 34, 64, 66, 128, 130])
def test_short_rows_of_reals_are_transformed_as_they_are_alone_however_many_there_are(n):
    for dtype in (tg.float32, tg.float64):
        rows = tg.randn(35, n, dtype=dtype)
        there = tg.fft.rfft(rows)
        np.testing.assert_allclose(there, np.fft.rfft(rows.double()), 1e-4, 1e-4)
        there[:, 0] += 2j  # of which the way back knows nothing, nor of the middle's
        there[:, -1] += 3j
        back = tg.fft.irfft(there, n)
        np.testing.assert_allclose(back, rows, 1e-4, 1e-4)
        for k in (0, 17, 34):
            assert tg.fft.rfft(rows[k])[1 : n // 2].tolist() == there[k, 1 : n // 2].tolist()
            assert tg.fft.irfft(there[k], n).tolist() == back[k].tolist()
