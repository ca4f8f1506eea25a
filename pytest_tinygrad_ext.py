"""pytest fixtures: for code written for PyTorch that is tested with tinygrad_ext, and for authors of plugins.

A module beside the package, not in it: pytest imports it at every start of every project, and the package brings NumPy.
"""

import pytest


@pytest.fixture
def as_torch():
    """tinygrad_ext, which `import torch` means as long as the test runs.

    A real torch that is already imported is set aside and put back afterwards.

        def test_mine(as_torch):
            from torch.autograd import gradcheck
            ...
    """
    import tinygrad_ext
    from tinygrad_ext import as_torch

    was_on = as_torch.installed()
    as_torch.install(replace=True)
    yield tinygrad_ext
    if not was_on:
        as_torch.uninstall()


@pytest.fixture
def isolated_plugins():
    """No plugin is there but those the test asks for; registries, settings and environment are put back afterwards.

    def test_mine(isolated_plugins):
        isolated_plugins.use("vision")               # an installed one
        isolated_plugins.register("demo", Demo())    # an object or module with hooks
    """
    from tinygrad_ext.testing.isolation import isolated

    with isolated() as plugins:
        yield plugins


@pytest.fixture
def register_temporarily():
    """Registers ops, modules and overrides for one test.

    def test_mine(register_temporarily):
        double = register_temporarily.op("demo::double(Tensor self) -> Tensor", compose=lambda self: self + self)
    """
    from tinygrad_ext.testing.isolation import temporary

    with temporary() as register:
        yield register
