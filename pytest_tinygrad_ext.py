"""pytest fixtures for code that is written for PyTorch and tested with tinygrad_ext.

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
