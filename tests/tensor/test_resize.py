"""resize_ and resize_as_: a shape that stays, orders of dimensions."""

import pytest

import tinygrad_ext as tg

LAST, LAST_3D, ROWS, SAME = tg.channels_last, tg.channels_last_3d, tg.contiguous_format, tg.preserve_format


def test_a_shape_that_stays_leaves_the_order():
    t = tg.arange(6.0).reshape(2, 3).t()
    before, numbers = t.stride(), t.tolist()
    for resized in (t.resize_(3, 2), t.resize_((3, 2)), t.resize_as_(tg.ones(3, 2))):
        assert resized is t and t.stride() == before and t.tolist() == numbers
    assert t.resize_(2, 3).stride() == (3, 1) and t.tolist() == [[0, 1, 2], [3, 4, 5]]


ORDERS = {
    "channels_last": (lambda: tg.ones(1).resize_(1, 2, 3, 4, memory_format=LAST), (24, 1, 8, 2)),
    "channels_last of the same shape": (
        lambda: tg.ones(1, 2, 3, 4).resize_(1, 2, 3, 4, memory_format=LAST),
        (24, 1, 8, 2),
    ),
    "channels_last_3d": (lambda: tg.ones(1).resize_((1, 2, 3, 4, 5), memory_format=LAST_3D), (120, 1, 40, 10, 2)),
    "rows": (lambda: tg.ones(2, 3).t().resize_(3, 2, memory_format=ROWS), (2, 1)),
    "as another": (lambda: tg.ones(1).resize_as_(images(), memory_format=SAME), (24, 1, 8, 2)),
    "as another of rows": (lambda: tg.ones(1).resize_as_(tg.ones(2, 3).t(), memory_format=SAME), (2, 1)),
    "as the shape of another": (lambda: tg.ones(1).resize_as_(images()), (24, 12, 4, 1)),
    "on meta": (lambda: tg.ones(1, device="meta").resize_(1, 2, 3, 4, memory_format=LAST), (24, 1, 8, 2)),
}


def images():
    return tg.ones(1, 2, 3, 4).to(memory_format=LAST)


@pytest.mark.parametrize("case", ORDERS)
def test_orders_are_as_asked_for(case):
    make, strides = ORDERS[case]
    resized = make()
    assert resized.stride() == strides
    if not resized.is_meta:
        resized.copy_(tg.arange(float(resized.numel())).reshape(resized.shape))
        assert resized.reshape(-1).tolist() == list(range(resized.numel()))


def test_orders_that_do_not_suit_leave_the_tensor():
    t = tg.ones(2, 3)
    with pytest.raises(RuntimeError, match="Unsupported memory format Preserve"):
        t.resize_(1, 2, memory_format=SAME)
    with pytest.raises(RuntimeError, match="rank 4"):
        t.resize_(2, 2, memory_format=LAST)
    assert t.shape == (2, 3)
