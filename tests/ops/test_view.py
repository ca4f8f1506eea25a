"""Rules of views that the sweep over the op table cannot know: sharing, strides, derivatives of odd windows."""

import math

import pytest

import tinygrad_ext as tg


def _leaf(*shape):
    return (tg.arange(math.prod(shape), dtype=tg.float64) + 1).reshape(shape).clone().requires_grad_()


@pytest.mark.parametrize(
    "size, stride, offset", [((3, 3), (1, 1), 0), ((2, 2, 2), (1, 0, 2), 1), ((4,), (0,), 2), ((), (), 3)]
)
def test_as_strided_differentiates_windows_that_read_an_element_several_times(size, stride, offset):
    x = _leaf(6)
    assert tg.autograd.gradcheck(lambda t: t.as_strided(size, stride, offset) ** 2, (x,))
    assert tg.autograd.gradgradcheck(lambda t: t.as_strided(size, stride, offset) ** 2, (x,))


def test_as_strided_of_an_expanded_tensor_shares_the_gradient_among_its_copies():
    x = _leaf(4)
    x.expand(3, 4).as_strided((2, 4), (0, 1)).sum().backward()
    assert x.grad.tolist() == [2.0] * 4


def test_as_strided_keeps_no_hold_on_its_input():
    x = _leaf(4)
    y = x * 1
    window = y.as_strided((2,), (1,), 1)
    y.mul_(2)
    window.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_overlapping_windows_of_unfold_add_up():
    x = _leaf(5)
    x.unfold(0, 3, 1).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0, 2.0, 1.0]


def test_a_shape_whose_product_wraps_around_is_refused():
    with pytest.raises(RuntimeError, match="overflow"):
        tg.zeros(3).view(2**32, 2**32)


def test_windows_outside_the_storage_are_refused():
    for size, stride, offset in (((2,), (2**62,), 0), ((2,), (1,), 2**62), ((7,), (1,), 0), ((3,), (3,), 0)):
        with pytest.raises(RuntimeError):
            tg.zeros(6).as_strided(size, stride, offset)


def test_in_place_views_move_the_window_and_keep_the_memory():
    x = _leaf(2, 3)
    y = x * 2
    v = y.view(3, 2)
    v.t_()
    v.mul_(3)
    (y * y).sum().backward()
    assert v.shape == (2, 3)
    assert x.grad.tolist() == (72 * x.detach()).tolist()


def test_views_of_a_view_that_became_a_leaf_are_guarded():
    x = tg.zeros(6).view(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x.select(0, 0).mul_(2)


def test_contiguous_of_a_contiguous_tensor_is_the_tensor():
    x = _leaf(2, 3)
    y = x * 1
    assert y.contiguous() is y
    assert y.t().contiguous().stride() == (2, 1)
    with tg.inference_mode():
        assert not x.contiguous().is_inference()


def test_all_pieces_share_memory_with_the_whole():
    x = tg.zeros(4, 2)
    for piece in (*x.split(2), *x.chunk(3), *x.unbind(), *x.split([1, 3])):
        piece.add_(1)
    assert x.tolist() == [[4.0, 4.0]] * 4


def test_unused_pieces_have_zero_gradient():
    x = _leaf(4, 3)
    (x * 1).unbind(1)[2].sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 1.0]] * 4


def test_views_of_meta_tensors_have_shape_only():
    x = tg.empty(4, 6, device="meta")
    assert x.view(3, 8).shape == (3, 8)
    assert x.unfold(1, 2, 2).shape == (4, 3, 2)
    assert x.t().contiguous().device.type == "meta"


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_a_copy_is_the_same_whatever_the_order_of_dimensions(dtype):
    values = tg.arange(70 * 33 * 3).reshape(70, 33, 3).to(getattr(tg, dtype))
    for dims in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)):
        moved = values.permute(dims)
        back = moved.contiguous().permute([dims.index(i) for i in range(3)])
        assert bool((back == values).all())


def test_a_tensor_copied_from_its_own_transpose_reads_before_it_writes():
    x = tg.arange(9).reshape(3, 3)
    x.copy_(x.t())
    assert x.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_new_dimensions_of_size_one_step_over_what_follows():
    x = tg.ones(2, 3)
    assert x.expand(1, 2, 3).stride() == (6, 3, 1)
    assert x.expand(1, 1, 2, 3).stride() == (6, 6, 3, 1)
    assert x.t().expand(1, 3, 2).stride() == (3, 1, 3)
    assert x.expand(4, 1, 2, 3).stride() == (0, 6, 3, 1)
    assert tg.ones(()).expand(1, 1).stride() == (0, 0)


def test_ravel_lies_densely_where_flatten_is_a_view():
    x = tg.arange(10.0)[::2]
    flat = x.ravel()
    assert flat.stride() == (1,) and flat.is_contiguous() and flat.tolist() == x.tolist()
    assert x.flatten() is x
    row = tg.zeros(2, 3)
    assert row.ravel().data_ptr() == row.data_ptr()
    (slope,) = tg.autograd.grad((y := tg.arange(6.0).requires_grad_())[::2].ravel().sum(), y)
    assert slope.tolist() == [1, 0, 1, 0, 1, 0]
