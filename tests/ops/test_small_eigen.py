"""Eigenvalues and vectors of small matrices: residuals, pairs, norms, and matrices that iterations find hard."""

import numpy as np
import pytest
import scipy.linalg

import tinygrad_ext as tg


def found(a):
    """Values and vectors of one matrix, checked for what holds whatever the matrix."""
    values, vectors = (t.numpy().astype("c16") for t in tg.linalg.eig(tg.from_numpy(a)))
    digit, real, wide = np.finfo(a.dtype).eps, a.dtype.kind == "f", a.astype("c16")
    size = np.linalg.norm(wide)
    assert abs(wide @ vectors - vectors * values).max() <= 40 * digit * size
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, rtol=8 * digit)
    assert abs(values.sum() - wide.trace()) <= 40 * digit * size
    if real:
        np.testing.assert_array_equal(np.sort_complex(values), np.sort_complex(values.conj()))
    for value, vector in zip(values, vectors.T):
        assert value.imag or not real or not vector.imag.any()
        largest = abs(vector) >= abs(vector).max() * (1 - 8 * digit)
        assert (abs(vector.imag[largest]) <= 4 * digit).any()
    alone = tg.linalg.eigvals(tg.from_numpy(a)).numpy()
    np.testing.assert_array_equal(alone.astype("c16"), values)
    return values


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("order", range(1, 18))
def test_matrices_of_many_kinds(order, dtype):
    rng = np.random.default_rng(order)
    turn = np.linalg.qr(rng.standard_normal((order, order)))[0]
    jordan = np.eye(order, k=1) + 2 * np.eye(order)
    low = np.zeros((order, order))
    low[0, 0] = 1
    kinds = [rng.standard_normal((order, order)) for _ in range(10)]
    kinds += [np.round(kinds[0]), kinds[1] + kinds[1].T, turn, turn @ jordan @ turn.T, turn @ low @ turn.T]
    kinds += [turn @ np.diag(np.round(rng.standard_normal(order))) @ turn.T for _ in range(10)]
    kinds += [np.ones((order, order)), np.zeros((order, order)), np.eye(order), np.roll(np.eye(order), 1, 0), jordan.T]
    kinds += [np.triu(kinds[2]), np.tril(kinds[3]), np.eye(order, k=1) + np.eye(order, k=-1), -np.eye(order) + 1e-9]
    kinds += [np.vander(np.linspace(-1, 1, order)), 1 / (np.arange(order)[:, None] + np.arange(order) + 1)]
    for k, a in enumerate(kinds):
        found(a.astype(dtype))
        if np.dtype(dtype).kind == "c":
            found((a * 1j).astype(dtype))
            found((a + 1j * kinds[k - 1]).astype(dtype))
            found((a + 1j * a.T).astype(dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("order", [4, 8, 13, 16])
def test_near_triangles_are_not_parted_by_their_balance(order, dtype):
    """Their residuals are LAPACK's: scales that part rows as far as they can cost hundreds of digits."""
    rng = np.random.default_rng(order)
    worst = np.zeros(2)
    for _ in range(20):
        a = rng.standard_normal((order, order)) + (1j * rng.standard_normal((order, order)) if dtype[0] == "c" else 0)
        a = (np.triu(a) + 1e-4 * np.tril(a, -1)).astype(dtype)
        ours = [t.numpy() for t in tg.linalg.eig(tg.from_numpy(a))]
        for i, (values, vectors) in enumerate((ours, scipy.linalg.eig(a))):
            off = abs(a.astype("c16") @ vectors.astype("c16") - vectors.astype("c16") * values.astype("c16"))
            worst[i] = max(worst[i], off.max() / np.linalg.norm(a))
    assert worst[0] <= 8 * worst[1]


def test_known_values():
    rng = np.random.default_rng(0)
    for order in (4, 8, 13):
        turn = np.linalg.qr(rng.standard_normal((order, order)))[0]
        block = np.diag(np.arange(1.0, order + 1))
        block[0, 1], block[1, 0], block[1, 1] = -3, 3, 1
        want = np.sort_complex([1 + 3j, 1 - 3j, *range(3, order + 1)])
        np.testing.assert_allclose(np.sort_complex(found(turn @ block @ turn.T)), want, atol=1e-12)
    np.testing.assert_allclose(abs(found(np.roll(np.eye(8), 1, 0))), 1, rtol=1e-14)
    for order in (2, 5, 16):
        drawn = rng.standard_normal((2, order, order))
        turn = np.linalg.qr(drawn[0] + 1j * drawn[1])[0]
        want = np.sort_complex(np.arange(order) * (1 - 2j) + 1j)
        np.testing.assert_allclose(np.sort_complex(found(turn * want @ turn.conj().T)), want, atol=1e-12)


@pytest.mark.parametrize(
    "dtype, power", [("f4", 30), ("f4", -33), ("f8", 300), ("f8", -300), ("c8", -33), ("c16", 300)]
)
def test_numbers_of_any_size(dtype, power):
    a = np.random.default_rng(7).standard_normal((2, 8, 8))
    a = (a[0] if dtype[0] == "f" else a[0] + 1j * a[1]).astype(dtype)
    factor = np.ldexp(np.ones((), a.real.dtype), round(power * 3.3))
    values, vectors = tg.linalg.eig(tg.from_numpy(a))
    large, same = tg.linalg.eig(tg.from_numpy(a * factor))
    np.testing.assert_array_equal(large.numpy(), values.numpy() * factor)
    np.testing.assert_array_equal(same.numpy(), vectors.numpy())


def test_rows_of_unlike_sizes_are_balanced():
    """Powers of two along the diagonal and back change no value."""
    drawn = np.random.default_rng(9).standard_normal((2, 8, 8))
    scale = 2.0 ** np.array([40, -30, 20, 0, -10, 35, 5, -25])
    for a in (drawn[0], drawn[0] + 1j * drawn[1]):
        want = np.sort_complex(tg.linalg.eigvals(tg.from_numpy(a)).numpy())
        got = np.sort_complex(tg.linalg.eigvals(tg.from_numpy(a * scale[:, None] / scale)).numpy())
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("dtype", [tg.float64, tg.complex64])
def test_a_matrix_has_the_same_bits_in_a_batch(dtype):
    drawn = np.random.default_rng(11).standard_normal((2, 40, 8, 8))
    a = tg.from_numpy(drawn[0] if dtype == tg.float64 else drawn[0] + 1j * drawn[1]).to(dtype)
    values, vectors = tg.linalg.eig(a)
    turned = tg.linalg.eig(a.mT.contiguous().mT)
    assert tg.equal(turned[0], values) and tg.equal(turned[1], vectors)
    for i in (0, 17, 39):
        alone = tg.linalg.eig(a[i])
        assert tg.equal(alone[0], values[i]) and tg.equal(alone[1], vectors[i])


def test_what_is_not_finite_is_refused():
    a = tg.eye(5)
    a[1, 3] = float("nan")
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        tg.linalg.eig(a)
