"""torch.quantization: the older place of `torch.ao.quantization`."""

from . import absent
from .ao_quantization import FUNCTIONS, TYPES, WHY

globals().update(absent.functions("quantization", FUNCTIONS, WHY))
globals().update(absent.types("quantization", TYPES, WHY))
