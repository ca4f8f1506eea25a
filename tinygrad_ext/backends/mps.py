"""Apple's GPUs: not used by this build."""


def is_available():
    """False."""
    return False


def is_built():
    """False."""
    return False
