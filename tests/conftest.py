"""Settings of the whole test run."""

from hypothesis import settings

# a slow machine is no failure
settings.register_profile("project", deadline=None)
settings.load_profile("project")

# for a tree that is not installed; an installed package brings it by its entry point, under the same name
pytest_plugins = ["pytest_tinygrad_ext"]
