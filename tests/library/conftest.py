"""Ops of a test are gone when it is over."""

import pytest

from tinygrad_ext import registry
from tinygrad_ext.library import definition, libraries
from tinygrad_ext.registry import scope


@pytest.fixture(autouse=True)
def nothing_stays():
    """Take back what the test registered, and see that the tables are as before."""
    before, mark = _tables(), scope.application.mark()
    yield
    scope.application.undo(mark)
    assert _tables() == before


def _tables():
    tables = (registry.ops, registry.namespaces, definition.definitions, libraries._defined, definition._scopes)
    return [set(t) for t in tables]
