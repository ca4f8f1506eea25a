"""Derivatives of views of parts, and dropout's factors: one rule of sizes for meta tensors and the cpu."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused

aten = tg.ops.aten

REFUSED = {
    "an index outside": (lambda g: aten._select_backward(g, (2, 3), 0, 2), "index 2 out of range"),
    "no dimension to put it in": (lambda g: aten._select_backward(g, (), 0, 0), "at least one dimension"),
    "a slice beyond the end": (lambda g: aten._slice_backward(g, (2, 4), 1, 2, 1), "do not fit in"),
    "a step of zero": (lambda g: aten._slice_backward(g, (2, 4), 1, 0, 0), "do not fit in"),
    "another number of dimensions": (lambda g: aten._slice_backward(g, (4,), 0, 0, 1), "is no slice of"),
    "one dimension twice": (lambda g: aten._diagonal_backward(g, (2, 3, 3), 0, 1, -2), "cannot be identical"),
    "a diagonal of another length": (lambda g: aten._diagonal_backward(g, (2, 2, 2), 0, 1, 2), "broadcast shape"),
    "windows of another number": (lambda g: aten._unfold_backward(g, (9,), 0, 3, 1), "does not fit windows"),
    "windows larger than the tensor": (lambda g: aten._unfold_backward(g, (2,), 0, 3, 3), "maximum size"),
    "a negative size": (lambda g: aten._diagonal_backward(g, (2, -3, 3), 0, 1, 2), "negative dimension"),
    "a window without end": (lambda g: aten._rewindow(g, (1 << 62, 1), 0, (2,), (1,), 0, False), "overflowed"),
    "strides that are too few": (lambda g: aten._rewindow(g, (1,), 0, (2,), (1,), 0, False), "differ in number"),
    "integers for dropout": (lambda g: fused._dropout_noise(g.long(), 0.5, False), "not implemented for 'Long'"),
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("what", REFUSED)
def test_meta_tensors_are_refused_as_those_of_the_cpu(what, device):
    call, words = REFUSED[what]
    with pytest.raises((IndexError, RuntimeError), match=words):
        call(tg.ones(2, 3, device=device))


def test_what_overlapping_windows_read_several_times_gets_the_sum():
    assert aten._unfold_backward(tg.ones(3, 2), (4,), 0, 2, 1).tolist() == [1, 2, 2, 1]
    assert aten._rewindow(tg.ones(2, 3), (0, 1), 0, (3,), (1,), 0, False).tolist() == [2, 2, 2]
    assert aten._rewindow(tg.ones(2, 3), (0, 1), 0, (3,), (1,), 0, True).tolist() == [1, 1, 1]


def test_factors_of_dropout_are_drawn_from_the_generator_that_is_given():
    generator = tg.Generator().manual_seed(3)
    tg.manual_seed(3)
    first = fused._dropout_noise(tg.ones(8), 0.5, False)
    assert fused._dropout_noise(tg.ones(8), 0.5, False, generator=generator).tolist() == first.tolist()


def test_what_is_scattered_takes_the_dtype_of_the_copy():
    found = tg.zeros(2, 3).as_strided_scatter(tg.ones(2, 2, dtype=tg.int64), (2, 2), (1, 2), 1)
    assert found.dtype is tg.float32 and found.tolist() == [[0, 1, 1], [1, 1, 0]]


def test_a_diagonal_is_filled_where_elements_share_memory():
    for shape in ((1, 1), (3, 1), (1, 3)):
        base = tg.zeros(shape)
        shown = base.expand(3, 3)
        assert shown.fill_diagonal_(5) is shown
        assert base.tolist() == tg.full(shape, 5.0).tolist()
