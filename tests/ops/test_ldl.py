"""ldl_factor and ldl_solve of indefinite matrices, whose D has blocks of two rows; what LAPACK must not be led by."""

import numpy as np
import pytest

import tinygrad_ext as tg

DRAWN = np.random.default_rng(11)


def indefinite(*shape, complex_=False, hermitian=False):
    A = DRAWN.uniform(-1, 1, shape)
    if complex_:
        A = A + 1j * DRAWN.uniform(-1, 1, shape)
    turned = A.swapaxes(-1, -2)
    A = A + (turned.conj() if hermitian else turned)
    A[..., range(shape[-1]), range(shape[-1])] *= 1e-3  # so that rows are exchanged
    return A


@pytest.mark.parametrize("n", [1, 2, 3, 10, 70, 130])
@pytest.mark.parametrize("kind", [{}, {"complex_": True}, {"complex_": True, "hermitian": True}], ids=str)
def test_systems_of_indefinite_matrices(n, kind):
    A, B = indefinite(2, n, n, **kind), DRAWN.uniform(-1, 1, (2, n, 3)).astype(complex if kind else float)
    hermitian = kind.get("hermitian", False)
    LD, pivots = tg.linalg.ldl_factor(tg.from_numpy(A), hermitian=hermitian)
    assert n < 10 or (pivots < 0).any()
    X = tg.linalg.ldl_solve(LD, pivots, tg.from_numpy(B), hermitian=hermitian).numpy()
    np.testing.assert_allclose(A @ X, B, atol=1e-9)


@pytest.mark.parametrize("n", [2, 9, 24, 40])
def test_factors_are_pytorchs(n):
    """Up to 24 rows by loops of ours, beyond by LAPACK: the same pivots and factors."""
    torch = pytest.importorskip("torch")
    for kind in ({}, {"complex_": True}, {"complex_": True, "hermitian": True}):
        A = indefinite(3, n, n, **kind)
        hermitian = kind.get("hermitian", False)
        for got, want in zip(
            tg.linalg.ldl_factor_ex(tg.from_numpy(A), hermitian=hermitian),
            torch.linalg.ldl_factor_ex(torch.from_numpy(A), hermitian=hermitian),
        ):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-12)


def test_a_zero_on_the_diagonal():
    LD, pivots, info = tg.linalg.ldl_factor_ex(tg.zeros(2, 2))
    assert info.item() == 1 and LD.tolist() == [[0, 0], [0, 0]] and pivots.tolist() == [1, 2]
    with pytest.raises(tg.linalg.LinAlgError, match=r"D\[1,1\] is zero"):
        tg.linalg.ldl_factor(tg.zeros(3, 2, 2))


@pytest.mark.parametrize("pivots", [[0, 1], [3, 1], [1, 2**31 - 1], [-1, 2], [2, -2], [-3, -3], [-(2**31), 1]])
def test_pivots_that_name_no_rows_are_refused(pivots):
    with pytest.raises(RuntimeError, match="name rows that are not there"):
        tg.linalg.ldl_solve(tg.eye(2), tg.tensor(pivots, dtype=tg.int32), tg.ones(2, 1))
