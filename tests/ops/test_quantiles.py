"""What quantiles refuse."""

import pytest

import tinygrad_ext as tg


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("q", [[1.5, 0.5], [-0.1], [float("nan")]])
def test_quantiles_outside_of_the_range_are_named(name, q):
    with pytest.raises(RuntimeError, match=rf"{name}\(\) q values must be in the range \[0, 1\], got \["):
        getattr(tg.arange(6.0), name)(tg.tensor(q))


def test_quantiles_within_it_are_not_asked_under_a_transform():
    x = tg.arange(6.0)
    got = tg.vmap(lambda q: x.quantile(q))(tg.tensor([0.0, 0.5, 1.0]))
    assert got.tolist() == [0.0, 2.5, 5.0]
