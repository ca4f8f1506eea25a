"""In-place forms of pointwise ops: straight into self where that is safe, with the same results where it is not."""

import numpy as np
import pytest

import tinygrad_ext as tg

VALUES = np.arange(1.0, 7.0, dtype=np.float32)


def test_self_on_both_sides():
    t = tg.tensor(VALUES)
    assert t.mul_(t) is t and t.tolist() == (VALUES * VALUES).tolist()


@pytest.mark.parametrize(
    ("to", "of"), [(slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None)), (slice(0, 3), slice(3, 6))]
)
def test_another_part_of_the_same_memory(to, of):
    t, want = tg.tensor(VALUES), VALUES.copy()
    part = t[to]
    assert part.add_(t[of].clone()) is part
    want[to] += VALUES[of]
    assert t.tolist() == want.tolist()


def test_parts_that_meet_are_refused_and_parts_that_do_not_are_taken():
    t = tg.tensor(VALUES)
    with pytest.raises(RuntimeError, match="memory"):
        t[1:].add_(t[:-1])
    t[:3].add_(t[3:])
    assert t.tolist() == [5.0, 7.0, 9.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("of", [slice(None, None, 2), slice(1, None, 2)])
def test_strided_sides(of):
    t, other, want = tg.tensor(VALUES), tg.ones(3), VALUES.copy()
    t[of].sub_(other)
    want[of] -= 1
    assert t.tolist() == want.tolist()
    other.add_(t[of])
    assert other.tolist() == (1 + want[of]).tolist()


def test_broadcasts_numbers_and_other_dtypes():
    t = tg.ones(2, 3)
    t.add_(tg.tensor([1.0, 2.0, 3.0])).mul_(2).add_(tg.ones(2, 3, dtype=tg.int64)).div_(tg.tensor(2.0))
    assert t.tolist() == [[2.5, 3.5, 4.5]] * 2
    with pytest.raises(RuntimeError, match="broadcast shape"):
        tg.ones(3).add_(tg.ones(2, 3))
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        tg.ones(3, dtype=tg.int64).add_(tg.ones(3))


def test_a_write_counts_once_also_where_the_loop_fails():
    t = tg.ones(3, dtype=tg.int64)
    t.add_(t)
    assert t._version == 1
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        t.floor_divide_(tg.zeros(3, dtype=tg.int64))
    assert t._version == 2


def test_an_expanded_tensor_is_refused():
    with pytest.raises(RuntimeError, match="single memory location|memory"):
        tg.ones(1).expand(3).add_(tg.ones(3))
