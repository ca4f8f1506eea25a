"""What scripts ask before they choose a device: there is no GPU here."""

from tinygrad_ext.errors import refuse_unknown

__all__ = ["device_count", "is_available", "manual_seed_all"]


def is_available():
    """False."""
    return False


def device_count():
    """0."""
    return 0


def manual_seed_all(seed):
    """Do nothing: there is no device to seed."""


__getattr__ = refuse_unknown(__name__)
