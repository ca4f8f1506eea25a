"""Small matrices of a batch, which are worked on side by side: as right as LAPACK, and each as if it were alone."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg

L = tg.linalg
DTYPES = {"float32": np.float32, "float64": np.float64, "complex64": np.complex64, "complex128": np.complex128}
TIMES = 20  # of eps, size and norm that a residual may be


def drawn(seed, count, m, n, dtype, kind="any"):
    """A batch in NumPy: any numbers, of low rank, or over many magnitudes."""
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape) + 1j * rng.standard_normal(shape) * (np.dtype(dtype).kind == "c")
    a = normal(count, m, n)
    if kind == "low rank":
        a = normal(count, m, 1) @ normal(count, 1, n)
    if kind == "graded":
        a *= 10.0 ** rng.integers(-6, 7, (count, m, 1)) * 10.0 ** rng.integers(-4, 5, (count, 1, n))
    if kind == "zeros":
        a *= rng.integers(0, 2, a.shape)
    return (a if np.dtype(dtype).kind == "c" else a.real).astype(dtype)


def wide(a):
    """In double precision."""
    return a.astype(complex if a.dtype.kind == "c" else float)


def turned(a):
    return a.conj().swapaxes(-1, -2)


def near(got, want, a, times=TIMES):
    """Each matrix within so many roundings of the largest number in a."""
    eps = np.finfo(a.dtype).eps * max(a.shape[-2:])
    norm = np.abs(a).max((-2, -1), keepdims=True).astype(float) * max(a.shape[-2:])
    got, want = (wide(np.asarray(t)).reshape(len(a), -1) for t in (got, want))
    assert (np.abs(got - want) <= times * eps * norm.reshape(-1, 1)).all()


batches = given(
    st.integers(0, 99), st.integers(2, 19), st.integers(1, 16), st.integers(1, 16), st.sampled_from(list(DTYPES)),
    st.sampled_from(["any", "low rank", "graded", "zeros"]),
)  # fmt: skip
few = settings(max_examples=25, deadline=None, derandomize=True)


@few
@batches
def test_lu_is_that_of_partial_pivoting(seed, count, m, n, dtype, kind):
    a = drawn(seed, count, m, n, DTYPES[dtype], kind)
    P, lower, upper = (t.numpy() for t in L.lu(tg.tensor(a)))
    near(wide(P) @ wide(lower) @ upper, a, a, TIMES * 4)
    assert (np.abs(lower) <= 1.5).all() if lower.dtype.kind == "c" else (np.abs(lower) <= 1).all()
    _, pivots, info = L.lu_factor_ex(tg.tensor(a))
    diagonal = np.diagonal(upper, axis1=-2, axis2=-1)
    for one, code in zip(diagonal, info.numpy()):
        assert code == (np.flatnonzero(one == 0)[0] + 1 if (one == 0).any() else 0)
    assert (pivots.numpy() >= np.arange(1, min(m, n) + 1)).all() and (pivots.numpy() <= m).all()


@few
@batches
def test_qr_is_orthogonal(seed, count, m, n, dtype, kind):
    a = drawn(seed, count, m, n, DTYPES[dtype], kind)
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in L.qr(tg.tensor(a), mode))
        near(wide(q) @ r, a, a)
        near(
            turned(wide(q)) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (count,) + (q.shape[-1],) * 2),
            a * 0 + 1,
        )
        assert (np.tril(r, -1) == 0).all()
        np.testing.assert_array_equal(L.qr(tg.tensor(a), "r").R.numpy(), r[:, : min(m, n)])
    reflectors, tau = tg.geqrf(tg.tensor(a))
    if m >= n:
        q = L.qr(tg.tensor(a)).Q
        np.testing.assert_array_equal(L.householder_product(reflectors, tau).numpy(), q.numpy())


@few
@batches
def test_values_are_as_near_as_lapacks(seed, count, m, n, dtype, kind):
    a = drawn(seed, count, m, n, DTYPES[dtype], kind)
    want = np.linalg.svd(wide(a), compute_uv=False)
    near(L.svdvals(tg.tensor(a)).numpy(), want, a)
    square = drawn(seed, count, n, n, DTYPES[dtype], kind)
    for uplo in "LU":
        near(L.eigvalsh(tg.tensor(square), UPLO=uplo).numpy(), np.linalg.eigvalsh(wide(square), uplo), square)


@few
@batches
def test_vectors_belong_to_their_values(seed, count, m, n, dtype, kind):
    a = drawn(seed, count, m, n, DTYPES[dtype], kind)
    for full in (False, True):
        U, S, Vh = (t.numpy() for t in L.svd(tg.tensor(a), full_matrices=full))
        near(S, np.linalg.svd(wide(a), compute_uv=False), a)
        k = S.shape[-1]
        near(wide(U[..., :k]) * S[:, None] @ Vh[:, :k], a, a)
        for vectors in (U, turned(Vh)):
            eye = np.broadcast_to(np.eye(vectors.shape[-1]), (count,) + (vectors.shape[-1],) * 2)
            near(turned(wide(vectors)) @ vectors, eye, vectors * 0 + 1)
    square = drawn(seed, count, n, n, DTYPES[dtype], kind)
    for uplo in "LU":
        values, vectors = (t.numpy() for t in L.eigh(tg.tensor(square), uplo))
        kept = np.tril(wide(square), -1) if uplo == "L" else turned(np.triu(wide(square), 1))
        whole = kept + turned(kept) + np.eye(n) * square.real
        near(wide(vectors) * values[:, None] @ turned(vectors), whole, square)
        near(turned(wide(vectors)) @ vectors, np.broadcast_to(np.eye(n), whole.shape), vectors * 0 + 1)
        near(values, np.linalg.eigvalsh(whole), square)


@few
@batches
def test_least_squares(seed, count, m, n, dtype, kind):
    m, n = max(m, n), min(m, n)
    a, b = drawn(seed, count, m, n, DTYPES[dtype], kind), drawn(seed + 1, count, m, 3, DTYPES[dtype])
    found = L.lstsq(tg.tensor(a), tg.tensor(b))
    x, values = wide(found.solution.numpy()), np.linalg.svd(wide(a), compute_uv=False)
    eps = np.finfo(a.dtype).eps * m
    if kind == "low rank":
        assert (found.rank.numpy() == 1).all()
    assert (found.rank.numpy()[values[:, -1] > 100 * n * eps * values[:, 0]] == n).all()
    if kind in ("any", "low rank"):  # of full rank, or nothing near the limit: the residual is orthogonal to a
        most, right, solution = (np.abs(t).max((-2, -1)) for t in (a, b, x))
        size = most * (right + most * solution * n)
        assert (np.abs(turned(wide(a)) @ (wide(a) @ x - b)).max((-2, -1)) <= TIMES * m * eps * size).all()


@few
@given(st.integers(0, 99), st.integers(2, 19), st.integers(1, 16), st.integers(1, 4), st.sampled_from(list(DTYPES)))
def test_systems_and_cholesky(seed, count, n, k, dtype):
    a, b = (drawn(seed + i, count, n, s, DTYPES[dtype]) for i, s in ((0, n), (1, k)))
    x = L.solve(tg.tensor(a), tg.tensor(b)).numpy()
    size = np.abs(a).sum(-1).max() * np.abs(x).max((-2, -1), keepdims=True) + 1
    assert (np.abs(wide(a) @ x - b) <= TIMES * n * np.finfo(a.dtype).eps * size).all()
    np.testing.assert_array_equal(
        L.solve(tg.tensor(a), tg.tensor(b[:1])).numpy(), L.solve(tg.tensor(a), tg.tensor(b[:1]).expand(b.shape)).numpy()
    )
    inverse = L.inv(tg.tensor(a)).numpy()
    size = np.abs(a).sum(-1).max() * np.abs(inverse).max((-2, -1), keepdims=True)
    assert (np.abs(wide(a) @ inverse - np.eye(n)) <= TIMES * n * np.finfo(a.dtype).eps * size).all()
    positive = a @ turned(a) + np.eye(n, dtype=a.dtype)
    for upper in (False, True):
        factor = L.cholesky(tg.tensor(positive), upper=upper)
        f = wide(factor.numpy())
        near(turned(f) @ f if upper else f @ turned(f), positive, positive)
        t = L.solve_triangular(factor, tg.tensor(b), upper=upper).numpy()
        size = np.abs(f).sum(-1).max() * np.abs(t).max((-2, -1), keepdims=True) + 1
        assert (np.abs(f @ t - b) <= TIMES * n * np.finfo(a.dtype).eps * size).all()
    near(
        L.det(tg.tensor(a)).numpy()[:, None],
        np.linalg.det(wide(a))[:, None],
        a,
        TIMES * max(1, np.abs(np.linalg.det(a)).max()),
    )


def everything(a, positive):
    """Results of all that is computed side by side."""
    yield from L.lu_factor_ex(a)
    yield from L.cholesky_ex(positive)
    yield from L.inv_ex(a)
    yield from L.solve_ex(a, positive)
    yield from L.qr(a)
    yield from L.slogdet(a)
    yield from L.svd(a)
    yield from L.eigh(a)
    yield from L.lstsq(a, positive)[:3:2]
    yield from (L.det(a), L.svdvals(a), L.eigvalsh(a), L.solve_triangular(positive, a, upper=True))


@pytest.mark.parametrize("n", [1, 3, 8, 13])
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_bit_hangs_on_the_place_in_the_batch_or_on_the_threads(dtype, n):
    a = drawn(1, 333, n, n, DTYPES[dtype])
    a[5], a[6] = 0, a[7] * np.finfo(DTYPES[dtype]).tiny  # a singular one, and pivots without an inverse
    p = a @ turned(a) + np.eye(n, dtype=a.dtype) * (np.arange(333) % 9 != 2)[:, None, None]
    order = np.random.default_rng(2).permutation(333)
    wanted = [t.numpy() for t in everything(tg.tensor(a), tg.tensor(p))]
    for got, want in zip(everything(tg.tensor(a[order]), tg.tensor(p[order])), wanted):
        np.testing.assert_array_equal(got.numpy(), want[order])
    threads = tg.get_num_threads()
    tg.set_num_threads(3 - min(threads, 2))
    try:
        for got, want in zip(everything(tg.tensor(a), tg.tensor(p)), wanted):
            np.testing.assert_array_equal(got.numpy(), want)
    finally:
        tg.set_num_threads(threads)


@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes_neither_overflow_nor_vanish(dtype):
    a, most = drawn(3, 20, 8, 8, DTYPES[dtype]), float(np.finfo(DTYPES[dtype]).max)
    for scale in (most / 1e3, 1e3 / most, 4 / most):
        x = (wide(a) * scale).astype(a.dtype)
        fine = wide(x)
        limit = 1e-3 if scale == 4 / most else 1e-5  # numbers below the normal ones have fewer digits
        np.testing.assert_allclose(
            L.svdvals(tg.tensor(x)).numpy()[:, 0] / scale, np.linalg.svd(fine / scale, compute_uv=False)[:, 0], limit
        )
        want = np.linalg.eigvalsh(fine / scale)
        np.testing.assert_allclose(L.eigvalsh(tg.tensor(x)).numpy() / scale, want, limit, limit * 10)
        q, r = (wide(t.numpy()) for t in L.qr(tg.tensor(x)))
        np.testing.assert_allclose(q @ (r / scale), fine / scale, limit, limit)
        np.testing.assert_allclose(turned(q) @ q, np.broadcast_to(np.eye(8), q.shape), atol=1e-5)
        U, S, Vh = (wide(t.numpy()) for t in L.svd(tg.tensor(x)))
        np.testing.assert_allclose(U * (S / scale)[:, None] @ Vh, fine / scale, limit, limit)
        P, lower, upper = (wide(t.numpy()) for t in L.lu(tg.tensor(x)))
        np.testing.assert_allclose(P @ lower @ (upper / scale), fine / scale, limit, limit)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_ends_and_stays_in_its_matrix(dtype):
    a = drawn(4, 30, 8, 8, DTYPES[dtype])
    whole = [t.numpy() for t in (*L.lu_factor_ex(tg.tensor(a)), *L.qr(tg.tensor(a)))]
    for bad in (np.nan, np.inf):
        x = a.copy()
        x[9, 3, 4] = bad
        found = [t.numpy() for t in (*L.lu_factor_ex(tg.tensor(x)), *L.qr(tg.tensor(x)))]
        for got, want in zip(found, whole):
            np.testing.assert_array_equal(np.delete(got, 9, 0), np.delete(want, 9, 0))
        assert not np.isfinite(found[3][9]).all()
        for call in (L.svdvals, L.eigvalsh):
            with pytest.raises(tg.linalg.LinAlgError, match="element 9.*non-finite"):
                call(tg.tensor(x))
    with pytest.raises(tg.linalg.LinAlgError, match="element 2.*minor of order 3"):
        L.cholesky(tg.tensor(np.array([np.eye(4), np.eye(4), np.diag([1, 1, np.nan, 1])], dtype=a.dtype)))


def test_the_plainest_instruction_set_is_right_too():
    code = (
        "import tinygrad_ext as t; L = t.linalg\n"
        "for d in (t.float32, t.float64, t.complex64, t.complex128):\n"
        "    a = t.randn(7, 8, 8, dtype=d); e = t.eye(8, dtype=d).expand(a.shape); tol = dict(rtol=1e-3, atol=1e-3)\n"
        "    q, r = L.qr(a); P, l, u = L.lu(a); s = a @ a.mH + e; c = L.cholesky(s)\n"
        "    pairs = [(q @ r, a), (P @ l @ u, a), (c @ c.mH, s), (L.solve(s, s), e), (L.lstsq(s, s)[0], e)]\n"
        "    v, w = L.eigh(s); u, x, y = L.svd(a)\n"
        "    pairs += [((w * v.unsqueeze(-2)) @ w.mH, s), ((u * x.unsqueeze(-2)) @ y, a)]\n"
        "    pairs.append((L.eigvalsh(s).sum(-1), s.diagonal(0, 1, 2).sum(-1).abs()))\n"
        "    pairs.append((L.svdvals(a).square().sum(-1), a.abs().square().sum((1, 2))))\n"
        "    for x, y in pairs: t.testing.assert_close(x, y, **tol)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"TINYGRAD_EXT_ISA": "base"})
