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
        for rcond in (None, -1.0, 0.0, 1e-3, 0.5, 1.0, 2.0, float("nan")):
            if driver == "gelsy" and rcond is not None and not rcond <= 0.1:
                continue  # it estimates the values otherwise
            ours = tg.linalg.lstsq(tg.tensor(A), tg.tensor(B), rcond, driver=driver)
            theirs = torch.linalg.lstsq(torch.tensor(A), torch.tensor(B), rcond, driver=driver)
            for a, b in zip(ours, theirs):
                assert a.shape == tuple(b.shape), (driver, rcond)
                numpy.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-8, err_msg=f"{driver} {rcond}")


@pytest.mark.parametrize(
    "driver, rcond, rank",
    [("gelsd", 0.0, 1), ("gelsd", -0.0, 1), ("gelsd", -1.0, 1), ("gelsd", float("inf"), 1), ("gelss", -1.0, 1)]
    + [("gelss", 1.0, 0), ("gelss", 1e-3, 1)],
)
def test_a_limit_that_a_driver_does_not_take_is_the_last_digit(driver, rcond, rank):
    a, b = [[1.0, 2], [2, 4], [3, 6]], [[1.0], [2], [4]]
    found = tg.linalg.lstsq(tg.tensor(a, dtype=tg.float64), tg.tensor(b, dtype=tg.float64), rcond, driver=driver)
    assert found.rank.item() == rank
    want = numpy.linalg.pinv(a, 1e-3) @ b if rank else numpy.zeros((2, 1))
    numpy.testing.assert_allclose(found.solution.numpy(), want, atol=1e-10)


@pytest.mark.parametrize("driver", ["gelsd", "gelss"])
def test_a_limit_that_is_no_number_leaves_nothing_out(driver):
    found = tg.linalg.lstsq(tg.tensor(A), tg.tensor(B), float("nan"), driver=driver)
    assert found.rank.item() == 3
    numpy.testing.assert_allclose(found.solution.numpy(), numpy.linalg.lstsq(A, B, rcond=None)[0], atol=1e-10)
