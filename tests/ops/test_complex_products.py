"""Products of complex matrices run by own kernels: what they compute, in every layout, and what is added to them."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import tinygrad_ext as tg

DTYPES = [np.complex64, np.complex128]
# about the bounds of tiles, panels, blocks and parts of the depth
ROWS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25, 40])
COLUMNS = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 33, 255, 257, 300])
DEPTHS = st.sampled_from([0, 1, 2, 3, 31, 32, 33, 100, 255, 256, 257, 513])
ALPHAS, BETAS = st.sampled_from([0, 1, 2, 1j, 0.5 - 2j]), st.sampled_from([0, 1, 3, -1j, 1 + 1j])
LAYOUTS = st.sampled_from(["rows", "columns", "gaps", "window", "repeated"])


def drawn(random, shape, dtype):
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)


def laid(values, layout):
    """The same matrices, as they may lie in memory."""
    t = tg.from_numpy(values)
    *batch, m, n = t.shape
    if layout == "columns":
        return t.mT.contiguous().mT
    if layout == "gaps":
        return tg.zeros(*batch, 2 * m, 3 * n, dtype=t.dtype)[..., ::2, ::3].copy_(t)
    if layout == "window":
        return tg.zeros(*batch, m + 1, n + 3, dtype=t.dtype)[..., 1:, 2:-1].copy_(t)
    if layout == "repeated":
        return t[..., :1, :].expand_as(t)
    return t


def close(found, a, b, wanted, scale=1):
    """Whether rounding explains the difference: a bound of k steps, each of two products and two sums."""
    k = a.shape[-1]
    bound = 4 * (k + 3) * np.finfo(a.dtype).eps * (np.abs(a) @ np.abs(b) + scale)
    return found.shape == wanted.shape and (np.abs(found - wanted) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@hypothesis.given(st.integers(1, 3), ROWS, COLUMNS, DEPTHS, LAYOUTS, LAYOUTS, st.integers(0, 9))
def test_products_of_every_layout(dtype, batch, m, n, k, of_a, of_b, seed):
    random = np.random.default_rng(seed)
    a, b = drawn(random, (batch, m, k), dtype), drawn(random, (batch, k, n), dtype)
    x, y = laid(a, of_a), laid(b, of_b)
    a, b = x.numpy(), y.numpy()
    wanted = a.astype(np.clongdouble) @ b.astype(np.clongdouble)
    assert close(tg.bmm(x, y).numpy(), a, b, wanted)
    assert close(tg.matmul(x, y[0]).numpy(), a, b[:1], wanted if batch == 1 else a.astype(np.clongdouble) @ b[:1])
    assert close(tg.mv(x[0], y[0, :, 0]).numpy()[:, None], a[0], b[0, :, :1], wanted[0, :, :1])
    assert close(tg.matmul(x[0, 0], y[0]).numpy()[None], a[0, :1], b[0], wanted[0, :1])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@hypothesis.given(
    ROWS, COLUMNS, DEPTHS, st.sampled_from([0, 1, 2, 1j, 0.5 - 2j]), st.sampled_from([0, 1, 3, -1j, 1 + 1j])
)
def test_what_is_added_and_by_how_much(dtype, m, n, k, alpha, beta):
    random = np.random.default_rng(m + n + k)
    a, b, c = drawn(random, (m, k), dtype), drawn(random, (k, n), dtype), drawn(random, (m, n), dtype)
    x, y, start = tg.from_numpy(a), tg.from_numpy(b), tg.from_numpy(c)
    wanted = alpha * (a.astype(np.clongdouble) @ b) + beta * c.astype(np.clongdouble)
    scale = 8 * (1 + np.abs(a) @ np.abs(b) + np.abs(c))
    found = tg.addmm(start, x, y, alpha=alpha, beta=beta)
    assert close(found.numpy(), a, b, wanted, scale)
    assert tg.equal(start.clone().addmm_(x, y, alpha=alpha, beta=beta), found)
    by_columns = tg.empty(n, m, dtype=x.dtype).t()
    assert tg.equal(tg.addmm(start, x, y, alpha=alpha, beta=beta, out=by_columns), found)


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("m, n, k", [(12, 40, 300), (37, 290, 64), (4, 16, 33), (5, 9, 7), (70, 70, 70)])
def test_bits_depend_on_no_layout_and_no_place(m, n, k, dtype):
    a, b = tg.randn(m, k, dtype=dtype), tg.randn(k, n, dtype=dtype)
    whole = a @ b
    for of_a in ("rows", "columns", "gaps", "window"):
        for of_b in ("rows", "columns", "gaps", "window"):
            assert tg.equal(laid(a.numpy(), of_a) @ laid(b.numpy(), of_b), whole), (of_a, of_b)
    assert tg.equal(a[: m - 1] @ b[:, 2:], whole[: m - 1, 2:]) or m - 1 < 4
    assert tg.equal(tg.bmm(tg.stack([b.mH, b.mH]), tg.stack([a.mH, a.mH]))[1].mH, whole)


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
def test_no_weight_is_not_read(dtype):
    bad = tg.full((20, 20), complex("nan+nanj"), dtype=dtype)
    start = tg.randn(20, 20, dtype=dtype)
    assert tg.equal(tg.addmm(start, bad, bad, alpha=0), start)
    assert tg.equal(tg.addmm(bad, start, start, beta=0), start @ start)
    assert tg.equal(tg.addmv(start[0], bad, bad[0], alpha=0), start[0])


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
def test_nan_stays_where_it_belongs(dtype):
    a, b = tg.ones(9, 30, dtype=dtype), tg.ones(30, 21, dtype=dtype)
    a[3, 4], b[7, 20] = complex("nan"), complex("nan")
    found = (a @ b).isnan()
    assert found[3].all() and found[:, 20].all() and found.sum() == 21 + 9 - 1


@pytest.mark.parametrize("dtype", [tg.complex64, tg.complex128], ids=str)
@pytest.mark.parametrize("batch", [(1,), (3,), (16,), (400,), (20, 20), (2, 1, 5)])
@pytest.mark.parametrize("m, k", [(17, 16), (20, 8), (1, 5), (300, 3), (4, 40)])
def test_batches_times_vectors(m, k, batch, dtype):
    a, v, u = tg.randn(*batch, m, k, dtype=dtype), tg.randn(k, dtype=dtype), tg.randn(m, dtype=dtype)
    for x in (a, a.mT.contiguous().mT, tg.zeros(*batch, m, 2 * k, dtype=dtype)[..., ::2].copy_(a)):
        tg.testing.assert_close(x @ v, (a * v).sum(-1))
        tg.testing.assert_close(u @ x, (a * u[:, None]).sum(-2))
        tg.testing.assert_close(tg.nn.functional.linear(x, v), (a * v).sum(-1))
        tg.testing.assert_close(tg.inner(x, v), (a * v).sum(-1))
