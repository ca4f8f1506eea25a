"""Without compiling, programs are what they were, for a debugger to step through."""

import os
import subprocess
import sys
import typing

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn

CODE = """
import tinygrad_ext as tg
from tinygrad_ext import jit, nn

def f(x):
    return x + 1

layer = nn.Linear(2, 2)
assert jit.script(f) is f and jit.trace(f, tg.ones(2)) is f
assert jit.script(layer) is layer and jit.trace_module(layer, {"forward": tg.ones(1, 2)}) is layer
"""


def test_by_the_variable_of_the_environment():
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTORCH_JIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_by_a_switch():
    def f(x):
        return x + 1

    jit._state.disable()
    try:
        assert jit.script(f) is f and jit.trace(f, tg.ones(2)) is f
    finally:
        jit._state.enable()
    assert isinstance(jit.script(f), jit.ScriptFunction)
    assert isinstance(jit.script(nn.ReLU()), jit.ScriptModule)


@pytest.mark.parametrize("which", ["Optional", "Dict"])
def test_types_that_say_not_what_they_hold(which):
    with pytest.raises(RuntimeError, match=f"Attempted to use {which} without"):
        jit.isinstance(1, getattr(typing, which))


def test_arguments_of_a_union():
    program = jit.CompilationUnit("def f(x: Union[int, float]):\n    return 1")
    with pytest.raises(RuntimeError, match=r"Expected a member of Union\[float, int\] but instead found type str"):
        program.f("a")


def test_names_that_are_no_types():
    with pytest.raises(jit.Error, match="Unknown type name 'Foo'"):
        jit.CompilationUnit("def f(x: Tuple[Foo, int]):\n    return 1")
