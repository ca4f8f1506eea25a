"""Layers, activations and losses as functions.

The names come from the op records: everything a record puts under ``nn.functional``, and the functions at the top of
the package that PyTorch lists here too.
"""

from ..core.call.overridable import overridable as _overridable
from ..errors import refuse_unknown
from ..registry import functions
from .grouped import grouped_mm
from .gumbel import gumbel_softmax
from .multi_head import multi_head_attention_forward
from .triplets import triplet_margin_with_distance_loss

_PLACE = "nn.functional."
_FROM_TOP = (
    "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink", "logsigmoid",
    "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu", "relu_", "rrelu_", "selu_", "sigmoid",
    "softmax", "log_softmax", "tanh", "threshold_",
)  # fmt: skip


@_overridable
def elu_(input, alpha=1.0):
    """`elu` in place: input is written to, and returned."""
    return functions["nn.functional.elu"](input, alpha, True)


def _gather():
    found = {name: functions[name] for name in _FROM_TOP if name in functions}
    found["gumbel_softmax"], found["grouped_mm"] = gumbel_softmax, grouped_mm
    found["elu_"] = elu_
    found["multi_head_attention_forward"] = multi_head_attention_forward
    found["triplet_margin_with_distance_loss"] = triplet_margin_with_distance_loss
    found.update({path[len(_PLACE) :]: f for path, f in functions.items() if path.startswith(_PLACE)})
    return found


globals().update(_gather())
__all__ = sorted(_gather())


__getattr__ = refuse_unknown(__name__)
