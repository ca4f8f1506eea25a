"""torch.distributed.device_mesh: there is one device."""

from . import absent

_WHY = "there is one process here, and no mesh of devices"
globals().update(absent.functions("distributed.device_mesh", "init_device_mesh", _WHY))
globals().update(absent.types("distributed.device_mesh", "DeviceMesh", _WHY))
