"""Parametrizations by orthogonal matrices and by the largest singular value, real and complex, by their formulas."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

SHAPES = (4, 4), (5, 3), (3, 5)
DTYPES = "float64", "complex128"


def numbers(shape, dtype, seed=0):
    random = np.random.RandomState(seed)
    real, imag = random.randn(*shape), random.randn(*shape)
    return real + 1j * imag if dtype == "complex128" else real


def expected(x, name):
    """The matrix that the free numbers stand for: exp(A) or (1 - A/2)^-1 (1 + A/2) of what is skew."""
    tall = x.T if x.shape[0] < x.shape[1] else x
    rows, columns = tall.shape
    below = np.zeros((rows, rows), x.dtype)
    below[:, :columns] = np.tril(tall)
    skew = below - below.conj().T
    if name == "cayley":
        made = np.linalg.solve(np.eye(rows) - skew / 2, np.eye(rows) + skew / 2)
    else:  # i times a Hermitian matrix
        angles, vectors = np.linalg.eigh(skew / 1j)
        made = (vectors * np.exp(1j * angles)) @ vectors.conj().T
        made = made if np.iscomplexobj(x) else made.real
    return made[:, :columns].T if tall is not x else made[:, :columns]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["matrix_exp", "cayley"])
def test_free_numbers_give_the_matrix_of_the_formula(name, shape, dtype):
    layer = nn.Linear(shape[1], shape[0], dtype=getattr(tg, dtype))
    nn.utils.parametrizations.orthogonal(layer, "weight", name, use_trivialization=False)
    free = numbers(shape, dtype)
    with tg.no_grad():
        layer.parametrizations.weight.original.copy_(tg.from_numpy(free))
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected(free, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["matrix_exp", "cayley"])
def test_an_orthogonal_matrix_that_is_assigned_is_the_weight(name, shape, dtype):
    layer = nn.Linear(shape[1], shape[0], dtype=getattr(tg, dtype))
    nn.utils.parametrizations.orthogonal(layer, "weight", name)
    tall = numbers((max(shape), min(shape)), dtype, seed=1)
    q = np.linalg.qr(tall)[0]
    q = q if q.shape == shape else q.T
    with tg.no_grad():
        layer.weight = tg.from_numpy(q)
    np.testing.assert_allclose(layer.weight.detach().numpy(), q, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_spectral_norm_divides_by_the_largest_singular_value(dtype):
    layer = nn.Linear(5, 4, dtype=getattr(tg, dtype))
    weight = numbers((4, 5), dtype)
    with tg.no_grad():
        layer.weight.copy_(tg.from_numpy(weight))
    nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=200)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight / np.linalg.norm(weight, 2), rtol=1e-9, atol=1e-9)
