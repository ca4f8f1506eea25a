"""torch.ao: nothing is quantized or pruned there; `nn.utils.prune` prunes."""

from . import ao_quantization as quantization

__all__ = ["quantization"]
