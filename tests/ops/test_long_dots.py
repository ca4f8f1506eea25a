"""Sums of products of two long vectors are made of parts, which threads share."""

import numpy
import pytest

import tinygrad_ext as tg


@pytest.fixture(autouse=True)
def keep_num_threads():
    before = tg.get_num_threads()
    yield
    tg.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [16384, 16385, 40_000, 1_048_576, 1_100_003])
def test_long_dots_are_exact_and_the_same_with_every_number_of_threads(n, dtype):
    rng = numpy.random.default_rng(n)
    x, y = rng.standard_normal((2, n)).astype(dtype)
    found = set()
    for threads in (1, 2, 3, 5):
        tg.set_num_threads(threads)
        found.add(tg.from_numpy(x).dot(tg.from_numpy(y)).item())
    (value,) = found
    sizes = numpy.abs(x.astype("f8") * y)
    exact = numpy.sum((x.astype("g") * y), dtype="g")
    assert abs(value - exact) <= numpy.finfo(dtype).eps * (16 * numpy.sqrt(numpy.sum(sizes**2)) + abs(exact))


@pytest.mark.parametrize("step", [1, 2, -1])
def test_steps_and_what_is_added_to_count_in_every_part(step):
    x = numpy.arange(100_000.0) % 7
    y = numpy.arange(100_000.0) % 5
    a, b = tg.from_numpy(x), tg.from_numpy(y)
    if step == -1:
        a, b = a.flip(0), b.flip(0)
    else:
        a, b = a[::step], b[::step]
    exact = float(numpy.sum(x[::step] * y[::step]))
    assert a.dot(b).item() == exact and (a @ b).item() == exact
    assert tg.addmv(tg.ones(1, dtype=tg.float64), a[None], b, beta=3, alpha=2).item() == 3 + 2 * exact
