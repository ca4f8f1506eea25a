"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["common", "coverage", "foreign", "ladder", "tables", "wrap"])
def test_examples_of_a_module_are_true(name):
    result = doctest.testmod(importlib.import_module(f"tinygrad_ext.overrides.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
