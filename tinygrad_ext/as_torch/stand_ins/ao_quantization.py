"""torch.ao.quantization: nothing is quantized."""

from . import absent

FUNCTIONS = "quantize_dynamic prepare convert prepare_qat fuse_modules get_default_qconfig"
TYPES = "FakeQuantizeBase FakeQuantize ObserverBase MinMaxObserver QConfig QuantStub DeQuantStub QuantWrapper"
WHY = "there are no quantized tensors here"
globals().update(absent.functions("ao.quantization", FUNCTIONS, WHY))
globals().update(absent.types("ao.quantization", TYPES, WHY))
