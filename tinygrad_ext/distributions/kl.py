"""The table of divergences, by the types of the two distributions."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .bounded import Exponential, Uniform
from .discrete import Bernoulli, Categorical, Geometric
from .independent import Independent
from .real_line import Cauchy, HalfCauchy, HalfNormal, Laplace, Normal
from .utils import sum_rightmost

_KL_REGISTRY = {}


@boundary
def register_kl(type_p, type_q):
    """Decorate ``f(p, q)``, the divergence of distributions of these types and their subclasses.

    Raises:
        TypeError: one of them is no type.
    """
    for given in (type_p, type_q):
        # any type: libraries have distributions of their own, which are mixed into subclasses of Distribution
        if not isinstance(given, type):
            raise TypeError(f"Expected a subclass of Distribution, but got {given}")

    def register(function):
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return register


def _find(type_p, type_q):
    """The function for the nearest types, where that of p counts first."""
    for p in type_p.__mro__:
        for q in type_q.__mro__:
            if (p, q) in _KL_REGISTRY:
                return _KL_REGISTRY[p, q]
    return None


@boundary
def kl_divergence(p, q):
    """The Kullback-Leibler divergence of q from p, one value for each of the batch.

    Raises:
        NotImplementedError: the table has nothing for these types; `register_kl` adds to it.
    """
    function = _find(type(p), type(q))
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}; "
            "add it with register_kl"
        )
    return function(p, q)


def _gaussians(p, q, difference):
    ratio = (p.scale / q.scale).square()
    return (ratio + (difference / q.scale).square() - 1 - ratio.log()) / 2


@register_kl(Normal, Normal)
def _normal(p, q):
    return _gaussians(p, q, p.loc - q.loc)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _gaussians(p, q, 0 * p.scale)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    distance = (p.loc - q.loc).abs()
    share = p.scale / q.scale
    return -share.log() + distance / q.scale + share * tg.exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - tg.log(4 * p.scale * q.scale)


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p, q):
    return _cauchy(p.base_dist, q.base_dist)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    share = q.rate / p.rate
    return share - 1 - share.log()


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    outside = (q.low > p.low) | (q.high < p.high)
    return tg.where(outside, math.inf, tg.log((q.high - q.low) / (p.high - p.low)))


def _times_log(share, ratio):
    """``share * log(ratio)``, where nothing times anything is nothing."""
    return tg.where(share == 0, 0.0, share * tg.log(ratio))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    return _times_log(p.probs, p.probs / q.probs) + _times_log(1 - p.probs, (1 - p.probs) / (1 - q.probs))


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - tg.log1p(-q.probs) / p.probs - q.logits


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = tg.where(q.probs == 0, math.inf, terms)
    return tg.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of Independent distributions with different reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
