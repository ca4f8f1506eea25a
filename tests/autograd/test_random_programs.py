"""Random programs: gradients equal finite differences, and PyTorch's."""

import programs
import programs_beside_torch
import pytest


def test_random_programs_have_the_right_gradient_or_are_refused():
    allowed = sum(programs.check(programs.draw(seed)) for seed in range(2000))
    assert allowed > 800


def test_random_programs_do_what_they_do_in_torch():
    pytest.importorskip("torch")
    same = sum(programs_beside_torch.check(seed) == "same" for seed in range(300))
    assert same > 200
