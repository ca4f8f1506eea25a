"""The package's own namespace."""

import pytest

import tinygrad_ext as tg


@pytest.mark.parametrize("name", [*tg._LAZY, *tg._LAZY_NAMES])
def test_every_lazy_name_resolves(name):
    assert getattr(tg, name) is not None


def test_an_unknown_name_points_to_the_page_of_differences():
    with pytest.raises(AttributeError, match=r"no attribute 'sofmax'.*'softmax'.*docs/differences\.md"):
        _ = tg.sofmax
