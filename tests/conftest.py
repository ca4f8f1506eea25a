"""Settings of the whole test run."""

from hypothesis import settings

# a slow machine is no failure
settings.register_profile("project", deadline=None)
settings.load_profile("project")
