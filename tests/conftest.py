"""Settings of the whole test run."""

import gc
import importlib.metadata
import os

from collecting import collect
from hypothesis import settings

# a slow machine is no failure
settings.register_profile("project", deadline=None)
settings.load_profile("project")

# PyTorch, where it is compared with, takes one thread: those of several test processes would wait for one another
os.environ.setdefault("MKL_NUM_THREADS", "1")

# for a tree that is not installed; an installed package brings it by its entry point, under the same name
pytest_plugins = ["pytest_tinygrad_ext", "tests.helpers.devices", "tests.helpers.settings"]


def _hide_installed_plugins():
    """The packages below plugins/, which `make test` installs, take no part: these tests are about the host.

    Their own tests run in a process of their own, `pytest plugins`.
    """
    every = importlib.metadata.distributions
    folder = lambda d: getattr(d, "_path", None)
    installed = {folder(d) for d in every() if "[tinygrad_ext." in (d.read_text("entry_points.txt") or "")}
    importlib.metadata.distributions = lambda *a, **opts: (d for d in every(*a, **opts) if folder(d) not in installed)


_hide_installed_plugins()


def pytest_collection_finish(session):
    """What was collected stays to the end; the collector of garbage need not walk through it again and again."""
    collect()
    gc.freeze()
