"""torch.mps: a kind of device that is not here."""

from . import no_device

globals().update(no_device.functions("mps"))
