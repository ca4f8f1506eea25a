"""A choice that is drawn and yet has a gradient, which `nn.functional` shows."""

import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.overridable import overridable as _overridable


@_overridable
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Weights of a choice that is drawn with the probabilities of logits (Jang et al., 2017; Maddison et al., 2017).

    They are the softmax along dim of (logits + noise) / tau, where the noise has the standard Gumbel distribution and
    comes from the default generator.

    Args:
        logits: of any shape with floating elements: logarithms of probabilities, up to a number added to all.
        tau: the temperature: the smaller, the closer to a one among zeros.
        hard: return a one at the largest weight and zeros elsewhere, with the gradient of the weights.
        eps: has no effect.

    Returns:
        A tensor like logits, which sums to 1 along dim.

    Raises:
        IndexError: dim is outside of the dimensions; RuntimeError: elements that are no floating numbers.
    """
    if eps != 1e-10:
        warnings.warn("gumbel_softmax: `eps` parameter is deprecated and has no effect; leave it out", stacklevel=2)
    noise = -tg.empty_like(logits.detach()).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    largest = soft.max(dim, keepdim=True)[1]
    return tg.zeros_like(soft).scatter_(dim, largest, 1.0) - soft.detach() + soft
