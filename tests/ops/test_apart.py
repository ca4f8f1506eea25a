"""Matrices whose columns LAPACK gets with gaps between them, whose bytes a power of two divides, and others."""

import numpy as np
import pytest

import tinygrad_ext as tg

SIZES = [(128, 128), (128, 70), (256, 130), (70, 128), (127, 129)]


def matrix(rows, columns, dtype):
    rng = np.random.default_rng(rows + columns)
    a = rng.standard_normal((2, rows, columns))
    return (a + 1j * rng.standard_normal(a.shape) if dtype[0] == "c" else a).astype(dtype)


def close(got, want, dtype):
    np.testing.assert_allclose(got, want, atol=2e-3 if dtype in ("f4", "c8") else 1e-10)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("sizes", SIZES)
def test_factors_multiply_to_the_matrix(sizes, dtype):
    a = matrix(*sizes, dtype)
    A = tg.from_numpy(a)
    for mode in ("reduced", "complete"):
        Q, R = (t.numpy() for t in tg.linalg.qr(A, mode))
        close(Q @ R, a, dtype)
        close(
            Q.conj().swapaxes(1, 2) @ Q, np.broadcast_to(np.eye(Q.shape[-1]), R.shape[:1] + (Q.shape[-1],) * 2), dtype
        )
    assert tg.equal(tg.linalg.qr(A, "r")[1], tg.linalg.qr(A)[1])
    if sizes[0] >= sizes[1]:
        close(tg.linalg.householder_product(*tg.geqrf(A)).numpy(), tg.linalg.qr(A)[0].numpy(), dtype)
    for full in (False, True):
        U, S, V = (t.numpy() for t in tg.linalg.svd(A, full))
        k = S.shape[-1]
        close(U[:, :, :k] * S[:, None] @ V[:, :k], a, dtype)
    close(tg.linalg.svdvals(A).numpy(), S, dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("order", [128, 130])
def test_vectors_of_eigenvalues(order, dtype):
    a = matrix(order, order, dtype)
    whole = a + a.conj().swapaxes(1, 2)
    values, vectors = (t.numpy() for t in tg.linalg.eigh(tg.from_numpy(whole)))
    close(whole @ vectors, vectors * values[:, None], dtype)
    close(tg.linalg.eigvalsh(tg.from_numpy(whole)).numpy(), values, dtype)
    values, vectors = (t.numpy() for t in tg.linalg.eig(tg.from_numpy(a)))
    close(a @ vectors, vectors * values[:, None], dtype)
    alone = tg.linalg.eigvals(tg.from_numpy(a)).numpy()
    close(alone.sum(-1) / order, a.trace(axis1=1, axis2=2) / order, dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("sizes", [*SIZES, (20, 30), (40, 17), (90, 100)])
def test_least_squares_of_full_and_of_less_rank(sizes, dtype):
    a, b = matrix(*sizes, dtype), matrix(sizes[0], 3, dtype)
    least = min(sizes)
    left, _, right = np.linalg.svd(a, full_matrices=False)
    for rank in (least, least - 4, 1):
        a = (left[:, :, :rank] * np.linspace(2, 1, rank) @ right[:, :rank]).astype(dtype)
        X, _, ranks, _ = tg.linalg.lstsq(tg.from_numpy(a), tg.from_numpy(b))
        assert ranks.tolist() == [rank, rank]
        close(X.numpy(), np.linalg.pinv(a, rcond=1e-4) @ b, dtype)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_least_squares_of_numbers_of_any_size(scale):
    a, b = matrix(90, 30, "f8"), matrix(90, 2, "f8")
    want = tg.linalg.lstsq(tg.from_numpy(a), tg.from_numpy(b))[0].numpy()
    for factor in (scale, 1.0):
        got = tg.linalg.lstsq(tg.from_numpy(a * scale), tg.from_numpy(b * factor))[0].numpy()
        np.testing.assert_allclose(got * (scale / factor), want, rtol=1e-10, atol=1e-13)
    zeros = tg.linalg.lstsq(tg.zeros(80, 70), tg.ones(80, 1))
    assert (zeros[0] == 0).all() and zeros[2].item() == 0
