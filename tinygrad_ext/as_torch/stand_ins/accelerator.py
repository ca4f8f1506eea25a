"""torch.accelerator: there is none beside the cpu."""

from . import no_device

_found = no_device.functions("accelerator")
is_available, device_count, synchronize = _found["is_available"], _found["device_count"], _found["synchronize"]
current_device_index = current_device_idx = _found["current_device"]


def current_accelerator(check_available=False):
    """None."""
    return None
