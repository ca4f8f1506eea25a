"""The example's pass puts its op where a program spells it out, and goes with its plugin."""

import doctest
from pathlib import Path

from tinygrad_ext import plugins
from tinygrad_ext.graph import passes

FOLDER = Path(__file__).parents[2] / "examples" / "passes"


def test_the_docstring_runs_and_the_pass_goes_with_the_plugin(load):
    try:
        assert doctest.testmod(load("gated")).failed == 0
        assert len(passes.registered()) == 1
    finally:
        plugins.unregister("gated")
    assert not passes.registered()
