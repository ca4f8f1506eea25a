"""Training programs as people write them have eager's bits when their step runs from a graph."""

import pytest
import training_losses
import training_models
import training_updates
from captured import same_bits
from training import PROGRAMS, trained

from tinygrad_ext import jit

assert training_losses and training_models and training_updates  # which fill the table


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_traced_step_has_eagers_bits(name):
    wanted, state = trained(PROGRAMS[name])
    got, after = trained(PROGRAMS[name], jit.trace)
    assert same_bits(got, wanted)
    assert list(after) == list(state)
    for key, tensor in state.items():
        assert same_bits(after[key], tensor), key
