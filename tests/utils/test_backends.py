"""Switches of PyTorch's libraries, which change nothing."""

import pytest

from tinygrad_ext import backends
from tinygrad_ext.backends import switches


@pytest.fixture(autouse=True)
def _as_before():
    yield
    switches._frozen.clear()


def test_switches_are_frozen_when_that_was_asked():
    assert not backends.flags_frozen()
    backends.disable_global_flags()
    assert backends.flags_frozen()
    with backends.cudnn.flags(enabled=False):
        assert not backends.cudnn.enabled
    assert backends.cudnn.enabled
