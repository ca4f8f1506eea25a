"""Examples are imported for one test."""

import importlib.util
import sys

import pytest


@pytest.fixture
def load(request):
    """load(name) imports an example of the test module's FOLDER, which is forgotten afterwards."""
    loaded = []

    def load(name):
        spec = importlib.util.spec_from_file_location(name, request.module.FOLDER / f"{name}.py")
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        loaded.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        del sys.modules[name]
