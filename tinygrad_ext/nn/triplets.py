"""A loss of triples by a distance that is a function, which no op's schema takes."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.overridable import overridable as _overridable

_WAYS = {"mean": tg.mean, "sum": tg.sum, "none": lambda loss: loss}


@_overridable
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """``max(0, margin + distance to the positive - distance to the negative)`` for a distance of one's own.

    Args:
        anchor, positive, negative: of shapes (N, D) or (D), as many dimensions each.
        distance_function: gives the distance of two such tensors; pairwise_distance where there is none.
        swap: the positive's own distance to the negative counts where it is smaller.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction, or a margin that is not positive.
        RuntimeError: tensors of different numbers of dimensions.
    """
    if reduction not in _WAYS:
        raise ValueError(
            f"{reduction} is not a valid value for reduction: triplet_margin_with_distance_loss takes "
            f"{', '.join(_WAYS)}"
        )
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = tg.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _WAYS[reduction]((margin + near - far).clamp_min(0))
