"""Products of some hundred rows and columns: the same bits in every layout and number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tinygrad_ext as tg
from tests.helpers.emitted import BEST

SIZES = [
    (640, 64, 256),
    (97, 300, 131),
    (256, 640, 64),
    (33, 1100, 200),
    (512, 128, 128),
    (2000, 40, 90),
    (48, 257, 99),
]
TYPES = {"float32": 2e-5, "float64": 4e-14}


def drawn(rows, columns, dtype):
    return tg.randn(rows, columns, dtype=getattr(tg, dtype))


@pytest.fixture(autouse=True)
def seed():
    tg.manual_seed(5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, k, n", SIZES)
def test_sums_are_those_of_numpy_in_double_precision(m, k, n, dtype):
    a, b, c = drawn(m, k, dtype), drawn(k, n, dtype), drawn(m, n, dtype)
    wanted = a.double().numpy() @ b.double().numpy()
    for got, exact in (
        (a @ b, wanted),
        (tg.addmm(c, a, b), wanted + c.double().numpy()),
        (tg.addmm(c, a, b, beta=0.5, alpha=-2), 0.5 * c.double().numpy() - 2 * wanted),
        (tg.nn.functional.linear(a, b.t().contiguous(), c[0]), wanted + c[0].double().numpy()),
    ):
        assert np.abs(got.double().numpy() - exact).max() < TYPES[dtype] * k**0.5 * 4


@pytest.mark.skipif(BEST != "avx512", reason="a BLAS sums in an order of its own")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, k, n", SIZES)
def test_every_layout_has_the_same_bits(m, k, n, dtype):
    a, b = drawn(m, k, dtype), drawn(k, n, dtype)
    wanted = a @ b
    wide = tg.zeros(m, k + 3, dtype=a.dtype)
    wide[:, 2:-1] = a
    for x in (a, a.t().contiguous().t(), wide[:, 2:-1]):
        for y in (b, b.t().contiguous().t()):
            assert tg.equal(x @ y, wanted)
    out = tg.empty(n, m, dtype=a.dtype).t()
    assert tg.equal(tg.mm(a, b, out=out), wanted)


@pytest.mark.parametrize("m, k, n", SIZES)
def test_every_number_of_threads_has_the_same_bits(m, k, n):
    a, b = drawn(m, k, "float32"), drawn(k, n, "float32")
    before, results = tg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            tg.set_num_threads(threads)
            results.append((a @ b, tg.stack([a, a, a, a, a]) @ b, tg.stack([a, a, a, a, a]) @ tg.stack([b] * 5)))
    finally:
        tg.set_num_threads(before)
    for row in results:
        assert all(tg.equal(x, y) for x, y in zip(row, results[0]))


def test_what_is_not_finite_stays_where_it_is():
    a, b = drawn(640, 64, "float32"), drawn(64, 256, "float32")
    a[3, 5] = float("nan")
    b[7, 11] = float("inf")
    found = (a @ b).isfinite()
    assert not found[3].any() and not found[:, 11].any() and found.sum().item() == 639 * 255


@pytest.mark.parametrize("level", ["avx2", "base"])
def test_less_able_processors_add_what_there_was(level):
    """Sums that begin with a bias or with what out held, of columns that lie far apart too."""
    script = (
        "import numpy as np, tinygrad_ext as tg\n"
        "rng = np.random.default_rng(0)\n"
        "for m, k, n in ((100, 40, 33), (7, 60, 64), (128, 9, 31), (3, 3, 3)):\n"
        "    a, b, c = (rng.standard_normal(s) for s in ((m, k), (k, 400), (m, n)))\n"
        "    for dtype, close in (('f4', 1e-4), ('f8', 1e-12)):\n"
        "        x, y, z = (tg.from_numpy(t.astype(dtype)) for t in (a, b, c))\n"
        "        y = y[:, :n]\n"
        "        for beta, alpha in ((1, 1), (0.5, -2), (0, 1)):\n"
        "            got = tg.addmm(z, x, y, beta=beta, alpha=alpha).numpy()\n"
        "            np.testing.assert_allclose(got, beta * c + alpha * (a @ b[:, :n]), rtol=0, atol=close * k)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"TINYGRAD_EXT_ISA": level})
