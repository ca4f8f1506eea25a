"""segment_reduce: what lies in no segment, long segments, several columns, and gradients of what is in them."""

import numpy as np
import pytest

import tinygrad_ext as tg

REDUCE = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}
LENGTHS = [3, 0, 700, 1, 296]


@pytest.mark.parametrize("columns", [1, 3, 70])
@pytest.mark.parametrize("reduce", REDUCE)
def test_long_segments_of_several_columns(reduce, columns):
    x = 1 + np.sin(np.arange(1000 * columns)).reshape(1000, columns) / 100
    found = tg.segment_reduce(tg.tensor(x), reduce, lengths=tg.tensor(LENGTHS), initial=1.0)
    ends = np.cumsum(LENGTHS)
    for k, (end, many) in enumerate(zip(ends, LENGTHS)):
        part = x[end - many : end]
        start = {"sum": 1, "prod": 1, "mean": 1 / max(many, 1)}.get(reduce)
        if not many:
            want = np.ones(columns)
        elif start is None:
            want = REDUCE[reduce](np.concatenate([part, np.ones((1, columns))]), 0)
        else:
            want = REDUCE[reduce](part, 0) * (start if reduce == "prod" else 1) + (0 if reduce == "prod" else start)
        np.testing.assert_allclose(found[k].numpy(), want, rtol=1e-10)


@pytest.mark.parametrize("reduce", REDUCE)
def test_rows_have_segments_of_their_own(reduce):
    x = tg.arange(24.0).sin().reshape(2, 6, 2)
    lengths = tg.tensor([[2, 4], [5, 1]])
    found = tg.segment_reduce(x, reduce, lengths=lengths, axis=-2)
    for row in range(2):
        assert found[row].equal(tg.segment_reduce(x[row], reduce, lengths=lengths[row]))
        assert found[row].equal(tg.segment_reduce(x[row], reduce, offsets=tg.tensor([0, int(lengths[row, 0]), 6])))


def test_what_lies_in_no_segment_counts_nowhere():
    x = tg.arange(1.0, 7, requires_grad=True)
    found = tg.segment_reduce(x, "sum", offsets=tg.tensor([1, 3, 5]))
    (slope,) = tg.autograd.grad(found, x, tg.tensor([1.0, 2.0]))
    assert found.tolist() == [5.0, 9.0] and slope.tolist() == [0, 1, 1, 2, 2, 0]
    assert tg.segment_reduce(x, "sum", lengths=tg.tensor([1, 2]), unsafe=True).tolist() == [1, 5]
    # those that leave the row are read as far as it goes
    assert tg.segment_reduce(x, "sum", lengths=tg.tensor([4, 2**62, -3]), unsafe=True).tolist() == [10, 11, 0]
    assert tg.segment_reduce(x, "sum", offsets=tg.tensor([-5, 4, 99, 1]), unsafe=True).tolist() == [10, 11, 0]


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_a_nan_stays_in_its_segment(reduce):
    x = tg.tensor([1.0, float("nan"), 2.0] + [3.0] * 20)
    found = tg.segment_reduce(x, reduce, lengths=tg.tensor([3, 20]))
    assert found[0].isnan() and found[1] == 3


def test_halves_are_rounded_once():
    x = tg.full((4000,), 1.0, dtype=tg.bfloat16)
    assert tg.segment_reduce(x, "sum", lengths=tg.tensor([4000])).tolist() == [4000.0]


def test_no_segments():
    assert tg.segment_reduce(tg.zeros(0, 3), "sum", lengths=tg.zeros(0, dtype=tg.int64)).shape == (0, 3)
    assert tg.segment_reduce(tg.zeros(0), "mean", lengths=tg.tensor([0])).isnan().tolist() == [True]
    with pytest.raises(RuntimeError, match="sum to data.size"):
        tg.segment_reduce(tg.zeros(3), "sum", lengths=tg.zeros(0, dtype=tg.int64))


def test_words_and_lengths_that_pytorch_does_not_take():
    x = tg.ones(3)
    with pytest.raises(RuntimeError, match="reduce argument must be either"):
        tg.segment_reduce(x, "", lengths=tg.tensor([3]))
    for dtype in (tg.int8, tg.int16, tg.uint8):
        with pytest.raises(NotImplementedError, match="int32 or int64"):
            tg.segment_reduce(x, "sum", lengths=tg.tensor([3], dtype=dtype))
