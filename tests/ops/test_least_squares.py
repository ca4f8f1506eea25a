"""linalg.lstsq: what each driver makes of rcond."""

import numpy
import pytest

import tinygrad_ext as tg

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
A = numpy.array([[1.0, 2, 0], [0, 1, 1], [2, 0, 1], [1, 1, 1]])
B = numpy.array([[1.0], [2], [3], [5]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [(4, 3), (4, 1), (1, 1), (2, 3)])
def test_drivers_without_a_limit_give_the_whole_solution(dtype, size):
    a, b = (x[: size[0]].astype(dtype) for x in (A[:, : size[1]], B))
    want = numpy.linalg.lstsq(a, b, rcond=None)[0]
    for driver in ("gels", "gelsd"):
        for rcond in (None, 1.0, 3.0, 1e-3):
            found = tg.linalg.lstsq(tg.tensor(a), tg.tensor(b), rcond, driver=driver)[0]
            numpy.testing.assert_allclose(found.numpy(), want, rtol=1e-4, atol=1e-4)


def test_a_limit_leaves_out_what_is_below_it():
    few = tg.linalg.lstsq(tg.tensor(A), tg.tensor(B), 0.5, driver="gelsd")
    values = numpy.linalg.svd(A, compute_uv=False)
    assert few.rank.item() == (values > 0.5 * values[0]).sum() < 3
    numpy.testing.assert_allclose(few.solution.numpy(), numpy.linalg.pinv(A, 0.5) @ B, atol=1e-10)
    assert tg.linalg.lstsq(tg.tensor(A), tg.tensor(B), 1.0, driver="gelss").rank.item() == 0


def test_limits_are_read_as_pytorchs():
    torch = pytest.importorskip("torch")
    for driver in DRIVERS:
        for rcond in (None, -1.0, 1e-3, 0.5, 1.0, 2.0):
            if driver == "gelsy" and rcond is not None and rcond > 0.1:
                continue  # it estimates the values otherwise
            ours = tg.linalg.lstsq(tg.tensor(A), tg.tensor(B), rcond, driver=driver)
            theirs = torch.linalg.lstsq(torch.tensor(A), torch.tensor(B), rcond, driver=driver)
            for a, b in zip(ours, theirs):
                assert a.shape == tuple(b.shape), (driver, rcond)
                numpy.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-8, err_msg=f"{driver} {rcond}")
