"""torch.ao.quantization: nothing is quantized. Models that are prepared for it run in floats, as there."""

from tinygrad_ext import nn as _nn

from . import absent

FUNCTIONS = "quantize_dynamic prepare convert prepare_qat fuse_modules get_default_qconfig"
TYPES = "FakeQuantizeBase FakeQuantize ObserverBase MinMaxObserver QConfig"
WHY = "there are no quantized tensors here"
globals().update(absent.functions("ao.quantization", FUNCTIONS, WHY))
globals().update(absent.types("ao.quantization", TYPES, WHY))


class QuantStub(_nn.Module):
    """Where numbers would be quantized: they stay as they are."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        """The argument."""
        return x


class DeQuantStub(QuantStub):
    """Where they would be floats again."""


class QuantWrapper(_nn.Module):
    """A module between the two."""

    def __init__(self, module):
        super().__init__()
        self.quant, self.dequant, self.module = QuantStub(), DeQuantStub(), module
        self.train(module.training)

    def forward(self, x):
        """What the module gives."""
        return self.dequant(self.module(self.quant(x)))
