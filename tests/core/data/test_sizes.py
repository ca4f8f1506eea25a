"""Shapes as tuples."""

import sys

import pytest

import tinygrad_ext as tg


def test_a_part_of_a_shape_is_a_shape_and_refuses_what_a_tuple_refuses():
    shape = tg.Size([7, 10**6, 20**5])
    for part in (slice(1, None), slice(None, None, -1), slice(5, 9), slice(None)):
        assert type(shape[part]) is tg.Size and shape[part] == tuple(shape)[part] == shape.__getitem__(part)
    assert type(shape[-1]) is int and shape[-1] == 20**5
    before = sys.getrefcount(shape[1])
    for _ in range(100):
        assert len(shape[1:]) == 2
    after = sys.getrefcount(shape[1])
    assert after == before

    class Doubled(tg.Size):
        def __getitem__(self, index):
            return 2 * super().__getitem__(index)

    assert Doubled([3])[0] == 6
    with pytest.raises(IndexError, match="tuple index out of range"):
        shape[3]
    with pytest.raises(TypeError, match="tuple indices must be integers or slices, not str"):
        shape["rows"]
