"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name", [f"overrides.{n}" for n in ("common", "coverage", "ladder", "tables", "wrap")] + ["registry.foreign"]
)
def test_examples_of_a_module_are_true(name):
    result = doctest.testmod(importlib.import_module(f"tinygrad_ext.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
