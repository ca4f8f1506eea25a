"""torch.utils.dlpack: memory of other libraries."""

import enum

import tinygrad_ext as _tg

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
from_dlpack = _tg.from_dlpack


class DLDeviceType(enum.IntEnum):
    """Kinds of devices, by DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor):
    """The capsule of a tensor."""
    return tensor.__dlpack__()
