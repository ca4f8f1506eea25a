"""svd_lowrank and pca_lowrank: what a matrix of low rank is made of comes back."""

import numpy as np
import pytest

import tinygrad_ext as tg


def _low(*shape, rank=2, dtype=tg.float64):
    tg.manual_seed(0)
    return tg.randn(*shape[:-1], rank, dtype=dtype).matmul(tg.randn(*shape[:-2], rank, shape[-1], dtype=dtype))


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (3, 9, 7)])
@pytest.mark.parametrize("dtype", [tg.float64, tg.complex128])
def test_factors_give_a_matrix_of_their_rank(shape, dtype):
    A = _low(*shape, dtype=dtype)
    U, S, V = tg.svd_lowrank(A, 3)
    assert U.shape == (*shape[:-1], 3) and S.shape == (*shape[:-2], 3) and V.shape == (*shape[:-2], shape[-1], 3)
    np.testing.assert_allclose((U * S.unsqueeze(-2)).matmul(V.mH).numpy(), A.numpy(), atol=1e-10)
    np.testing.assert_allclose(S[..., :2].numpy(), tg.linalg.svdvals(A)[..., :2].numpy())


def test_a_matrix_may_be_taken_off_first():
    A, M = _low(9, 6), tg.ones(9, 6, dtype=tg.float64)
    U, S, V = tg.svd_lowrank(A, 3, M=M)
    np.testing.assert_allclose((U * S).matmul(V.mT).numpy(), (A - M).numpy(), atol=1e-10)


def test_components_are_those_of_the_centered_rows():
    A = _low(12, 5) + 3
    U, S, V = tg.pca_lowrank(A, 2)
    centered = A - A.mean(0)
    np.testing.assert_allclose(S.numpy(), tg.linalg.svdvals(centered)[:2].numpy())
    np.testing.assert_allclose((U * S).matmul(V.mT).numpy(), centered.numpy(), atol=1e-10)
    assert tg.pca_lowrank(A)[1].shape == (5,)


def test_gradient_is_that_of_the_singular_values():
    A = _low(7, 5).requires_grad_()
    (low,) = tg.autograd.grad(tg.svd_lowrank(A, 2)[1].sum(), A)
    (full,) = tg.autograd.grad(tg.linalg.svdvals(A)[:2].sum(), A)
    np.testing.assert_allclose(low.numpy(), full.numpy(), atol=1e-10)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tg.svd_lowrank(tg.ones(3), 1), "expected A of at least 2 dimensions"),
        (lambda: tg.svd_lowrank(tg.ones(3, 2), 3), "not greater than min"),
        (lambda: tg.svd_lowrank(tg.ones(3, 2), 1, -1), "must be non-negative integer"),
        (lambda: tg.pca_lowrank(tg.ones(3), 1), "expected A of at least 2 dimensions"),
        (lambda: tg.pca_lowrank(tg.ones(3, 2), 3), "not greater than min"),
        (lambda: tg.pca_lowrank(tg.ones(3, 2), 1, niter=-1), "must be non-negative integer"),
    ],
)
def test_arguments_are_judged(call, text):
    with pytest.raises(ValueError, match=text):
        call()
