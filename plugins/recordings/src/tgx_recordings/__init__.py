"""Recordings of tinygrad_ext's profiler in a SQLite file: `database` writes one, the hook in plugin.py registers it."""

from tgx_recordings.database import write

__all__ = ["write"]
