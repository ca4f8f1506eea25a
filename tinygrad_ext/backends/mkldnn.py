"""Switches of oneDNN, which is not here: they may be set and change nothing."""

from .switches import flags_of

enabled = True
deterministic = False
allow_tf32 = True

flags = flags_of(__name__, {"enabled": False, "deterministic": False, "allow_tf32": True})


def is_available():
    """False."""
    return False
