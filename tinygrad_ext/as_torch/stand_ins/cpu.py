"""torch.cpu: the device that all tensors live on, asked as others are."""

import contextlib


class Stream:
    """The order of calls, of which there is one."""

    def __init__(self, priority=-1):
        """No argument counts."""

    def wait_stream(self, stream):
        """Do nothing: what was called has run."""


_ONLY = Stream()


def is_available():
    """True."""
    return True


def is_initialized():
    """True."""
    return True


def device_count():
    """1."""
    return 1


def current_device():
    """'cpu'."""
    return "cpu"


def set_device(device):
    """Do nothing: there is one."""


def synchronize(device=None):
    """Do nothing: what was called has run."""


def current_stream(device=None):
    """The one stream."""
    return _ONLY


def stream(stream):
    """A context that changes nothing."""
    return contextlib.nullcontext()
