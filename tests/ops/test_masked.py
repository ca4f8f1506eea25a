"""masked: reductions and normalizations over the elements where a mask is True, beside NumPy's masked arrays."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import masked


@pytest.fixture
def case():
    """A matrix and a mask with a full, a mixed and an empty row, as ours and as NumPy's."""
    values = np.random.default_rng(0).standard_normal((3, 4))
    taken = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], bool)
    return tg.tensor(values), tg.tensor(taken), np.ma.array(values, mask=~taken)


@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_reductions_agree_with_numpy(case, name, dim):
    x, mask, theirs = case
    empty = {"sum": 0, "prod": 1, "mean": np.nan}[name]
    want = np.ma.filled(getattr(theirs, name)(dim), empty)
    np.testing.assert_allclose(getattr(masked, name)(x, dim, mask=mask).numpy(), want)


def test_extremes_give_the_neutral_element_where_nothing_takes_part(case):
    x, mask, _ = case
    assert masked.amax(x, 1, mask=mask)[2] == float("-inf") and masked.amin(x, 1, mask=mask)[2] == float("inf")
    assert masked.amax(x.long(), 1, mask=mask)[2] == tg.iinfo(tg.int64).min
    assert masked.argmax(x, 1, mask=mask).dtype is tg.float64


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_rows_are_normalized_over_what_takes_part(case, name):
    x, mask, _ = case
    got = getattr(masked, name)(x, 1, mask=mask)
    some = mask[1]
    want = getattr(tg.nn.functional, name)(x[1][some], 0)
    np.testing.assert_allclose(got[1][some].numpy(), want.numpy())
    assert bool((got[1][~some] == (float("-inf") if name == "log_softmax" else 0)).all())
    assert bool(got[2].isnan().all())


def test_spread_and_norms_leave_out_the_rest(case):
    x, mask, theirs = case
    np.testing.assert_allclose(masked.var(x, 1, mask=mask)[:2].numpy(), theirs.var(1, ddof=1)[:2])
    np.testing.assert_allclose(masked.std(x, 1, False, mask=mask)[:2].numpy(), theirs.std(1)[:2])
    np.testing.assert_allclose(masked.norm(x, 2, 1, mask=mask).numpy(), np.sqrt(np.ma.filled((theirs**2).sum(1), 0)))
    np.testing.assert_allclose(masked.normalize(x, 2.0, 1, mask=mask)[:2].norm(dim=1).numpy(), [1, 1])


def test_gradients_stay_out_of_masked_elements(case):
    x, mask, _ = case
    rows, x = mask[:2], x[:2].requires_grad_()
    for function in (masked.sum, masked.mean, masked.logsumexp, masked.amax, masked.var):
        assert tg.autograd.gradcheck(lambda x: function(x, 1, mask=rows), x)
        (grad,) = tg.autograd.grad(function(x, 1, mask=rows).sum(), x)
        assert bool((grad[~rows] == 0).all())
    many = tg.stack([x.detach(), 2 * x.detach()])
    together = tg.vmap(lambda x: masked.mean(x, 1, mask=rows))(many)
    np.testing.assert_allclose(together[1].numpy(), 2 * together[0].numpy())


def test_masks_are_broadcast_and_judged():
    x = tg.arange(6.0).reshape(2, 3)
    assert masked.sum(x, mask=tg.tensor([1, 0, 1])) == 10
    with pytest.raises(IndexError, match="mask dimensionality higher"):
        masked.sum(x[0], mask=tg.ones(2, 3))
    with pytest.raises(RuntimeError, match="appears multiple times"):
        masked.sum(x, (0, -2))
    with pytest.raises(IndexError, match="Dimension out of range"):
        masked.sum(x, 2)
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(x.long())
    with pytest.raises(ValueError, match="no fully masked out rows"):
        masked.median(x.long(), mask=tg.tensor([False]))
    with pytest.raises(NotImplementedError, match="masked.amax"):
        masked.amax(x.bool(), mask=tg.tensor([True]))
    with pytest.raises(AssertionError, match="Only one of"):
        masked.var(x, 1, True, correction=1)


def test_a_product_along_a_list_of_no_dimensions_leaves_all_as_it_is():
    x, mask = tg.arange(1.0, 7).view(2, 3), tg.tensor([True, False, True])
    assert masked.prod(x, []).tolist() == x.tolist() and masked.prod(x, ()).item() == 720
    assert masked.prod(x, [], keepdim=True, mask=mask).tolist() == [[1, 1, 3], [4, 1, 6]]
