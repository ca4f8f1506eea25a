"""Systems of a triangle with several sides: NumPy's solutions, and each side's bits whatever stands beside it."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tinygrad_ext as tg

DTYPES = ["f4", "f8"]


def system(n, k, dtype, seed=0):
    """A matrix whose triangles and LU are well conditioned, and sides."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n)) / n**0.5 + 3 * np.eye(n)
    return a.astype(dtype), rng.standard_normal((n, k)).astype(dtype)


def close(got, want, dtype):
    np.testing.assert_allclose(got.numpy(), want, atol=3e-5 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [25, 26, 39, 64, 103])
def test_solutions_are_numpys(n, dtype):
    for k in (1, 2, 3, 4, 5, 9, 16, 17, 40):
        a, b = system(n, k, dtype)
        whole = tg.from_numpy(a), tg.from_numpy(a.T.copy()).mT
        for upper in (False, True):
            for unit in (False, True):
                part = (np.triu if upper else np.tril)(a.astype("f8"))
                if unit:
                    np.fill_diagonal(part, 1)
                want = np.linalg.solve(part, b.astype("f8"))
                for A in whole:
                    got = tg.linalg.solve_triangular(A, tg.from_numpy(b), upper=upper, unitriangular=unit)
                    close(got, want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_side_has_the_same_bits_among_others(dtype):
    a, b = system(77, 21, dtype)
    A, B = tg.from_numpy(a), tg.from_numpy(b)
    turned = tg.from_numpy(a.T.copy()).mT
    whole = tg.linalg.solve_triangular(A, B, upper=False)
    assert tg.equal(tg.linalg.solve_triangular(turned, B, upper=False), whole)
    assert tg.equal(tg.linalg.solve_triangular(A.expand(3, 77, 77), B, upper=False)[2], whole)
    for first, last in ((0, 2), (3, 6), (5, 12), (4, 21)):
        assert tg.equal(tg.linalg.solve_triangular(A, B[:, first:last], upper=False), whole[:, first:last])


@pytest.mark.parametrize("dtype", [*DTYPES, "c8", "c16"])
def test_systems_of_factors(dtype):
    real = dtype[0] == "f"
    for n in (24, 25, 60):
        for k in (1, 2, 7, 33):
            a, b = system(n, k, "f8" if dtype in ("f8", "c16") else "f4")
            a = a[::-1] if real else (a[::-1] + 1j * system(n, k, "f8", 1)[0]).astype(dtype)  # rows are exchanged
            A, B = tg.from_numpy(np.ascontiguousarray(a)), tg.from_numpy(b.astype(dtype))
            wide = a.astype("c16" if not real else "f8")
            atol = 2e-4 if dtype in ("f4", "c8") else 1e-12
            LU, pivots = tg.linalg.lu_factor(A)
            for adjoint, matrix in ((False, wide), (True, wide.conj().T)):
                want = np.linalg.solve(matrix, b)
                np.testing.assert_allclose(tg.linalg.lu_solve(LU, pivots, B, adjoint=adjoint).numpy(), want, atol=atol)
            np.testing.assert_allclose(tg.linalg.solve(A, B).numpy(), np.linalg.solve(wide, b), atol=atol)
            L = np.linalg.cholesky(wide @ wide.conj().T)
            want = np.linalg.solve(wide @ wide.conj().T, b)
            got = tg.cholesky_solve(B, tg.from_numpy(L.astype(dtype)))
            np.testing.assert_allclose(got.numpy(), want, atol=10 * atol)


@pytest.mark.parametrize("level", ["base", "avx2"])
def test_other_instruction_sets(level):
    script = (
        "import numpy as np, tinygrad_ext as tg\n"
        "for dtype, atol in (('f4', 1e-4), ('f8', 1e-12)):\n"
        "    rng = np.random.default_rng(0)\n"
        "    a = (np.tril(rng.standard_normal((53, 53))) / 7 + 3 * np.eye(53)).astype(dtype)\n"
        "    for k in (2, 5, 13, 30):\n"
        "        b = rng.standard_normal((53, k)).astype(dtype)\n"
        "        got = tg.linalg.solve_triangular(tg.from_numpy(a), tg.from_numpy(b), upper=False).numpy()\n"
        "        np.testing.assert_allclose(a @ got, b, atol=atol)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "TINYGRAD_EXT_ISA": level})


def test_zeros_on_the_diagonal_divide_as_elsewhere():
    a = tg.eye(40)
    a[7, 7] = 0
    x = tg.linalg.solve_triangular(a, tg.ones(40, 3), upper=True)
    assert x[7].isinf().all() and (x[8:] == 1).all()
