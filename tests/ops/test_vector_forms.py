"""What runs in vectors has the results of one number after another: edges, strides and counts that fill no vector."""

import numpy as np
import pytest

import tinygrad_ext as tg

EDGES = [0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 2.2250738585072014e-308, 1.7e308]


def laid_out(values, layout):
    """A tensor of the values: as they are, every second element of twice as many, or backwards in memory."""
    t = tg.tensor(values)
    if layout == "strided":
        return tg.stack([t, t * 0], -1)[..., 0]
    return t.flip(0).contiguous().flip(0) if layout == "flipped" else t


LAYOUTS = ("plain", "strided", "flipped")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nextafter_is_numpys(dtype, layout):
    with np.errstate(over="ignore"):
        edges = np.array([*EDGES, 3.4e38, 1e-45, np.finfo(dtype).max, -np.finfo(dtype).max], dtype)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        want = np.nextafter(x, y)
    got = tg.nextafter(laid_out(x, layout), laid_out(y, layout)).numpy()
    np.testing.assert_array_equal(got, want)
    there = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(want[there]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_frexp_is_numpys(dtype):
    with np.errstate(over="ignore"):
        x = np.array([*EDGES, *np.random.default_rng(0).normal(size=37), 0.5, 2.0, 1023.9, 2.0**-1074], dtype)
    mantissa, exponent = tg.frexp(tg.tensor(x))
    want = np.frexp(x)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(mantissa.numpy(), want[0])
    np.testing.assert_array_equal(exponent.numpy()[finite], want[1][finite])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 3, 8, 17, 300])
def test_complex_choices_comparisons_and_directions(dtype, layout, n):
    random = np.random.default_rng(n)
    a, b, w = (random.normal(size=n) + 1j * random.normal(size=n) for _ in range(3))
    a, b, w = (v.astype(dtype) for v in (a, b, w))
    b[::2] = a[::2]
    a[::5] = complex(np.nan, 1)
    x, y, z = (laid_out(v, layout) for v in (a, b, w))
    mask = random.random(n) > 0.5
    got = tg.where(tg.tensor(mask), x, y).numpy()
    np.testing.assert_array_equal(got.view("u1"), np.where(mask, a, b).view("u1"))  # bits, a NaN's too
    np.testing.assert_array_equal((x == y).numpy(), a == b)
    np.testing.assert_array_equal((x != y).numpy(), a != b)
    np.testing.assert_array_equal(tg.isnan(x).numpy(), np.isnan(a))
    np.testing.assert_array_equal(tg.logical_and(z, y * 0).numpy(), np.zeros(n, bool))
    close = dict(rtol=1e-5 if dtype == "complex64" else 1e-13)
    np.testing.assert_allclose(y.angle().numpy(), np.angle(b), **close)
    np.testing.assert_allclose(z.sgn().numpy(), w / np.abs(w), **close)
    near, step = np.abs(w) < 0.5, b - b[::-1]
    want = np.where(near, b[::-1] + w * step, b - step * (1 - w))
    np.testing.assert_allclose(tg.lerp(y.flip(0), y, z).numpy(), want, atol=1e-5 if dtype == "complex64" else 1e-13)


def test_angles_and_directions_of_zeros_and_infinities():
    parts = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(re, im) for re in parts for im in parts])
    got = tg.tensor(z).angle().numpy()
    np.testing.assert_allclose(got, np.angle(z), rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(np.angle(z)[~np.isnan(got)]))
    assert (tg.tensor(np.zeros(3, complex)).sgn() == 0).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("m,k,n", [(1, 100, 1), (100, 37, 1), (3, 300, 2), (5, 7, 40), (1, 9, 65)])
@pytest.mark.parametrize("turned", [False, True])
def test_integer_products_wrap_as_numpys(dtype, m, k, n, turned):
    random, limits = np.random.default_rng(m * k * n), np.iinfo(dtype)
    a = random.integers(limits.min, limits.max, (m, k), dtype, endpoint=True)
    b = random.integers(limits.min, limits.max, (k, n), dtype, endpoint=True)
    x = tg.tensor(a.T.copy()).t() if turned else tg.tensor(a)
    y = tg.tensor(b.T.copy()).t() if turned else tg.tensor(b)
    np.testing.assert_array_equal((x @ y).numpy(), a @ b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int16", "complex128", "float32", "bool"])
@pytest.mark.parametrize("n", [0, 1, 7, 1000, 40000])
def test_fills_of_every_width(dtype, n):
    kind = getattr(tg, dtype)
    filled = tg.full((n,), 1, dtype=kind)
    assert filled.dtype == kind and bool((filled == 1).all())
    assert bool((tg.empty(n, dtype=kind).fill_(1) == 1).all())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_nan_to_num_takes_either_part_by_itself(dtype, step):
    parts = [1.5, -0.0, np.inf, -np.inf, np.nan, 1e-40]
    x = np.array([complex(a, b) for a in parts for b in parts] * 5, dtype)
    given = {"nan": 2.5, "posinf": None, "neginf": -3.0}
    want = np.empty_like(x[::step])
    want.real, want.imag = (np.nan_to_num(part, **given) for part in (x[::step].real, x[::step].imag))
    found = tg.tensor(x)[::step].nan_to_num(**given).numpy()
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_integers_are_finite_numbers(dtype, layout):
    x = laid_out(np.arange(300).astype(dtype), layout)
    assert bool(x.isfinite().all()) and not bool(x.isnan().any() | x.isinf().any())
    into = tg.full((2 * len(x),), True)
    tg.isposinf(x, out=into[::2])
    assert into.tolist() == [False, True] * len(x)
