"""Zeros are written by as many threads as pay: every byte, in whatever number of pieces."""

import pytest

import tinygrad_ext as tg


@pytest.fixture(params=[1, 2, 3, 7])
def threads(request):
    before = tg.get_num_threads()
    tg.set_num_threads(request.param)
    yield request.param
    tg.set_num_threads(before)


@pytest.mark.parametrize("count", [0, 1, 4095, 131072, 262143, 262144, 262145, 700001])
def test_zeros_are_zeros_to_the_last_byte(threads, count):
    for dtype in (tg.uint8, tg.float32):
        used = tg.ones(count + 64, dtype=dtype)
        tg.zeros(count, dtype=dtype, out=used[:count])
        assert not used[:count].any()
        assert used[count:].all()
        del used
        assert not tg.zeros(count, dtype=dtype).any()


def test_gradients_of_what_was_picked_are_zero_elsewhere(threads):
    tg.manual_seed(0)
    table, rows = tg.ones(9001, 64, requires_grad=True), tg.randint(0, 9001, (40,))
    expected = tg.zeros(9001).index_add_(0, rows, tg.ones(40)).unsqueeze(1).expand(9001, 64)
    for picked in (
        tg.nn.functional.embedding(rows, table),
        table[rows],
        table.gather(0, rows.unsqueeze(1).expand(40, 64)),
    ):
        (got,) = tg.autograd.grad(picked.sum(), table)
        assert tg.equal(got, expected)
    (got,) = tg.autograd.grad(table.masked_select(table > 0).sum(), table)
    assert got.min() == 1
    hot = tg.nn.functional.one_hot(rows, 9001)
    assert tg.equal(hot.argmax(1), rows)
    assert hot.sum() == 40
