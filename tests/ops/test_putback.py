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


def test_a_window_is_put_into_the_memory_of_a_view():
    """The result has the strides of self; before its first element lies what lay there."""
    base = tg.arange(12.0)
    shown = base[2:].reshape(5, 2).t()
    assert shown.as_strided_scatter(tg.ones(0, 2), (0, 2), (1, 1), 100).equal(shown)  # no element lies outside
    found = shown.as_strided_scatter(tg.full((2,), -1.0), (2,), (3,), 3)
    want = base.clone()
    want[3], want[6] = -1, -1
    assert found.tolist() == want[2:].reshape(5, 2).t().tolist() and base[3] == 3


def test_a_window_of_repeated_elements_lies_in_a_copy_of_all_of_them():
    x = tg.arange(1.0, 4, dtype=tg.float64, requires_grad=True)
    src = tg.tensor([[9.0, 8], [7, 6]], dtype=tg.float64, requires_grad=True)
    found = x.expand(2, 3).as_strided_scatter(src, (2, 2), (1, 2), 1)
    assert found.tolist() == [[1, 9, 7], [8, 6, 3]]
    assert tg.autograd.gradcheck(lambda a, b: a.expand(2, 3).as_strided_scatter(b, (2, 2), (1, 2), 1), (x, src))


def test_gradients_of_a_window_in_memory():
    x, src = (tg.arange(n, dtype=tg.float64, requires_grad=True) for n in (9.0, 4.0))
    for window in (((2, 2), (1, 2), 1), ((2, 2), (3, 1))):
        assert tg.autograd.gradcheck(lambda a, b: a.as_strided_scatter(b.reshape(2, 2), *window), (x, src))
        assert tg.autograd.gradgradcheck(
            lambda a, b: (a * a).as_strided_scatter((b * b).reshape(2, 2), *window), (x, src)
        )
    (slope,) = tg.autograd.grad(x.as_strided_scatter(src, (4,), (2,)), x, tg.arange(1.0, 10, dtype=tg.float64))
    assert slope.tolist() == [0, 2, 0, 4, 0, 6, 0, 8, 9]


def test_windows_of_a_batch_end_in_the_memory_of_their_sample():
    x, src = tg.arange(12.0).reshape(2, 6), tg.zeros(2, 3)
    found = tg.func.vmap(lambda a, b: a._window_scatter(b, (3,), (2,), 1))(x, src)
    assert found.tolist() == [[0, 0, 2, 0, 4, 0], [6, 0, 8, 0, 10, 0]]
    with pytest.raises(RuntimeError, match="out of bounds"):
        tg.func.vmap(lambda a, b: a._window_scatter(b, (3,), (2,), 2))(x, src)


def test_windows_without_elements_have_gradients_and_batches():
    src, memory = tg.zeros(0, requires_grad=True), tg.arange(6.0, requires_grad=True)
    memory.as_strided_scatter(src, (0,), (1,), 100).sum().backward()
    assert src.grad.shape == (0,) and memory.grad.tolist() == [1] * 6
    rows = tg.func.vmap(lambda a: a.as_strided_scatter(tg.zeros(0), (0,), (1,), 100))(tg.ones(2, 3))
    assert rows.tolist() == [[1] * 3] * 2
