"""Switches of PyTorch's libraries, which change nothing."""

import os
import subprocess
import sys

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


@pytest.mark.parametrize(("asked", "told"), [("base", ("DEFAULT",)), ("avx2", ("AVX2", "DEFAULT"))])
def test_the_instructions_in_use_have_pytorchs_names(asked, told):
    code = "from tinygrad_ext.backends import cpu; print(cpu.get_cpu_capability())"
    environment = {**os.environ, "TINYGRAD_EXT_ISA": asked}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() in told
