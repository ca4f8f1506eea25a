"""These tests load plugins, and those of the host run without any: the two do not share a process."""

from pathlib import Path

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Nothing below this folder is collected together with tests from elsewhere; run `pytest plugins`."""
    paths = [Path(argument.partition("::")[0]).absolute() for argument in config.args]
    return None if all(p.is_relative_to(HERE) for p in paths) else True
