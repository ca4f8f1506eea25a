"""Bags of rows are added up in the order of their indices, whatever their width and the threads."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F
from tinygrad_ext.ops.fused import fused


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 16, 17, 33, 64, 100, 130, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_added_one_after_the_other(dtype, width, weighted):
    rng = np.random.default_rng(width)
    table, at = rng.standard_normal((50, width)).astype(dtype), rng.integers(0, 50, (9, 70))
    factors = rng.standard_normal((9, 70)).astype(dtype) if weighted else None
    weight, by = tg.from_numpy(table).requires_grad_(), None if factors is None else tg.from_numpy(factors)
    wanted, slope = np.zeros((9, width), dtype), np.zeros_like(table)
    given = rng.standard_normal(wanted.shape).astype(dtype)
    for k in range(70):
        row = table[at[:, k]] * (1 if factors is None else factors[:, k, None])
        wanted += np.where(at[:, k, None] == 3, 0, row).astype(dtype)
    for bag, indices in enumerate(at):
        for k, row in enumerate(indices):
            if row != 3:
                slope[row] += given[bag] * (1 if factors is None else factors[bag, k])
    before = tg.get_num_threads()
    try:
        for threads in (1, 2):
            tg.set_num_threads(threads)
            found = F.embedding_bag(tg.from_numpy(at), weight, mode="sum", padding_idx=3, per_sample_weights=by)
            np.testing.assert_array_equal(found.detach().numpy(), wanted)
            (back,) = tg.autograd.grad(found, weight, tg.from_numpy(given))
            np.testing.assert_array_equal(back.numpy(), slope)
    finally:
        tg.set_num_threads(before)


def test_rows_and_bags_outside_are_refused_on_the_way_back():
    rows = fused._embedding_bag_rows
    grad, at = tg.ones(2, 3), tg.tensor([0, 4])
    for indices, bag in ((at, tg.tensor([0, 2])), (at + 1, tg.tensor([0, 1])), (-at, tg.tensor([0, 1]))):
        with pytest.raises(IndexError, match="outside of the 5 rows, or a bag of the 2 bags"):
            rows(grad, indices, bag, None, 5)
    with pytest.raises(RuntimeError, match="does not fit indices of shape"):
        rows(grad, at, tg.tensor([0]), None, 5)
    with pytest.raises(RuntimeError, match="with a bag and a factor for each"):
        rows(grad, at, tg.tensor([0, 1]), tg.ones(3), 5)
    assert rows(grad, at, tg.tensor([-1, 1]), None, 5).sum(1).tolist() == [0, 0, 0, 0, 3]
