"""Random programs with branches, loops, writes to views, random numbers, Functions and custom ops are the same eager,
scripted, traced and from files, gradients too. `make programs` runs ten thousand."""

import pytest

from tests.helpers.random_programs import check

GROUP = 4


@pytest.mark.parametrize("start", range(0, 24, GROUP))
def test_all_ways_agree(start):
    for seed in range(start, start + GROUP):
        assert check(seed) in (2, 4)
