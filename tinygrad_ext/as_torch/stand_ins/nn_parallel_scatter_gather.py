"""torch.nn.parallel.scatter_gather: there is one device to scatter to."""

from . import absent

_WHY = "there is one device, the cpu: call the module"
globals().update(absent.functions("nn.parallel.scatter_gather", "scatter scatter_kwargs gather", _WHY))
