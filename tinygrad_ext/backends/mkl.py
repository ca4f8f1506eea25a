"""MKL: not used by this build."""


def is_available():
    """False."""
    return False
