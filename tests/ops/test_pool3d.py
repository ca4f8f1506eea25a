"""Adaptive pooling of volumes gives PyTorch's values, places and gradients."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn import functional as F

CASES = [((2, 3, 5, 4, 7), (2, 3, 2)), ((3, 4, 6, 3), 2), ((1, 2, 2, 3, 3), (5, 1, 4)), ((1, 1, 2, 3, 2), None)]


def _volume(shape):
    tg.manual_seed(0)
    return tg.randn(*shape, dtype=tg.float64).requires_grad_()


@pytest.mark.parametrize("shape, size", CASES)
def test_values_places_and_gradients_are_pytorchs(shape, size):
    torch = pytest.importorskip("torch")
    x = _volume(shape)
    theirs = torch.tensor(x.tolist(), dtype=torch.float64, requires_grad=True)
    size = (None, 2, None) if size is None else size
    mean, (best, places) = F.adaptive_avg_pool3d(x, size), F.adaptive_max_pool3d(x, size, True)
    want = torch.nn.functional.adaptive_avg_pool3d(theirs, size)
    want_best, want_places = torch.nn.functional.adaptive_max_pool3d(theirs, size, True)
    assert tg.allclose(mean, tg.tensor(want.tolist(), dtype=tg.float64))
    assert best.tolist() == want_best.tolist()
    assert places.tolist() == want_places.tolist()
    (mean * mean + best).sum().backward()
    (want * want + want_best).sum().backward()
    assert tg.allclose(x.grad, tg.tensor(theirs.grad.tolist(), dtype=tg.float64))


def test_of_equal_elements_the_first_is_taken_and_nan_wins():
    assert F.adaptive_max_pool3d(tg.zeros(1, 2, 2, 2), 1, return_indices=True)[1].item() == 0
    x = tg.zeros(1, 2, 2, 2)
    x[0, 1, 0, 1] = float("nan")
    values, places = F.adaptive_max_pool3d_with_indices(x, 1)
    assert values.isnan().item()
    assert places.item() == 5


@pytest.mark.parametrize("name", ["adaptive_avg_pool3d", "adaptive_max_pool3d"])
def test_both_are_differentiable_twice(name):
    x = _volume((1, 2, 3, 4, 3))
    square = lambda t: getattr(F, name)(t, 2) ** 2
    assert tg.autograd.gradcheck(square, (x,))
    assert tg.autograd.gradgradcheck(square, (x,))


def test_meta_tensors_get_the_shape():
    x = tg.empty(2, 3, 4, 5, 6, device="meta")
    assert F.adaptive_avg_pool3d(x, (2, None, 1)).shape == (2, 3, 2, 5, 1)
    values, places = F.adaptive_max_pool3d(x, 1, True)
    assert values.shape == places.shape == (2, 3, 1, 1, 1)


@pytest.mark.parametrize("size", [(0, 1, 1), (2, 0, 1), (0, 0, 0)])
def test_an_output_size_of_zero_gives_no_elements_and_a_gradient_of_zeros(size):
    x = _volume((1, 2, 2, 2, 2))
    mean, best = F.adaptive_avg_pool3d(x, size), F.adaptive_max_pool3d(x, size)
    assert mean.shape == best.shape == (1, 2, *size)
    (mean.sum() + best.sum()).backward()
    assert x.grad.tolist() == tg.zeros_like(x).tolist()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_modules_call_their_functions(dims):
    tg.manual_seed(0)
    x = tg.randn(2, 3, *[5] * dims)
    mean = getattr(nn, f"AdaptiveAvgPool{dims}d")(2)
    best = getattr(nn, f"AdaptiveMaxPool{dims}d")(2, return_indices=True)
    assert tg.equal(mean(x), getattr(F, f"adaptive_avg_pool{dims}d")(x, 2))
    values, places = best(x)
    assert tg.equal(x.flatten(2).gather(2, places.flatten(2)), values.flatten(2))
    assert repr(best) == f"AdaptiveMaxPool{dims}d(output_size=2)"


def test_a_mean_of_power_zero_is_refused_in_words():
    with pytest.raises(ZeroDivisionError, match="lp_pool1d: norm_type is 0"):
        tg.nn.functional.lp_pool1d(tg.ones(1, 2, 4), 0.0, 2)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_means_of_infinite_power_are_the_largest_and_least_sizes(dims):
    lp_pool = getattr(F, f"lp_pool{dims}d")
    x = tg.linspace(-6, 9, 4**dims, dtype=tg.float64).reshape(1, 1, *[4] * dims)
    assert tg.equal(lp_pool(x, float("inf"), 2), getattr(F, f"max_pool{dims}d")(x.abs(), 2))
    assert tg.equal(lp_pool(x, float("-inf"), 2), -getattr(F, f"max_pool{dims}d")(-x.abs(), 2))
