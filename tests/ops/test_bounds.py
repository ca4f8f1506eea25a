"""linspace and logspace between bounds in tensors: as between the numbers they hold, where nothing can be read too."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.func import vmap


@pytest.mark.parametrize("make", [tg.linspace, tg.logspace])
@pytest.mark.parametrize(
    ("start", "end", "steps", "dtype"),
    [
        (0.0, 1.0, 7, None),
        (0, 17, 18, tg.int64),
        (0.5, 10.7, 5, tg.int64),
        (3, -7, 6, tg.int32),
        (2.0, 3.0, 1, None),
        (2.0, 3.0, 0, tg.float64),
        (1 + 2j, 3.0, 4, None),
        (1.0, 3.0, 4, tg.complex128),
        (-2.5, 3.0, 6, tg.float16),
    ],
)
def test_as_between_numbers(make, start, end, steps, dtype):
    want = make(start, end, steps, dtype=dtype)
    tensors = tg.tensor(start, dtype=tg.complex128 if isinstance(start, complex) else tg.float64), tg.tensor(end)
    for bounds in (tensors, (tensors[0], end), (start, tensors[1])):
        found = make(*bounds, steps, dtype=dtype)
        assert found.dtype is want.dtype
        tg.testing.assert_close(found, want)


def test_nothing_is_read():
    starts = tg.tensor([0.0, 2.0])
    assert vmap(lambda a: tg.linspace(a, 2 * a, 3))(starts).tolist() == [[0, 0, 0], [2, 3, 4]]
    assert jit.trace(lambda a: tg.linspace(a, 1, 3), tg.tensor(0.0))(tg.tensor(5.0)).tolist() == [5, 3, 1]
    assert tg.linspace(tg.empty((), device="meta"), 1, 4, device="meta").shape == (4,)
    assert tg.linspace(tg.empty((), device="meta"), 1, 4).is_meta
    assert not tg.linspace(tg.tensor(0.0, requires_grad=True), 1, 4).requires_grad


def test_wrong_bounds_are_refused():
    with pytest.raises(RuntimeError, match="only supports 0-dimensional start and end tensors"):
        tg.linspace(tg.zeros(1), 1, 3)
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        tg.logspace(0, tg.tensor(1), -1)
    with pytest.raises(RuntimeError, match="without overflow"):
        tg.logspace(100, tg.tensor(1), 1)
    with pytest.raises(RuntimeError, match="without overflow"):
        tg.logspace(101, tg.tensor(1), 1, base=-10.0)


def test_one_number_that_is_none():
    inf = float("inf")
    assert tg.logspace(400.0, tg.tensor(3.0), 1).tolist() == [inf]
    assert tg.logspace(100, tg.tensor(3.0), 1, dtype=tg.float16).tolist() == [inf]
    assert tg.logspace(-1, tg.tensor(3.0), 1, base=0.0).tolist() == [inf]
    assert tg.logspace(0.5, tg.tensor(3.0), 1, base=-2.0).isnan().tolist() == [True]
