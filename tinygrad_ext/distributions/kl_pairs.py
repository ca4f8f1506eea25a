"""Divergences of distributions of different kinds: the cross entropy, from a few means of p, less the entropy of p."""

import math

import tinygrad_ext as tg

from .bounded import Exponential, Pareto, Uniform
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Binomial, Poisson
from .discrete import Bernoulli
from .gamma import Beta, Gamma
from .kl import register_kl
from .real_line import Gumbel, Laplace, Normal
from .utils import euler_constant

# where samples of the first may lie outside of the second, whatever the parameters
_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
_NEVER = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: _BOUNDED,
    Gamma: _BOUNDED,
    Gumbel: (*_BOUNDED, Exponential, Gamma),
    Laplace: (*_BOUNDED, Exponential, Gamma),
    Normal: (*_BOUNDED, Exponential, Gamma),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p, q):
    return tg.full(tg.broadcast_shapes(p.batch_shape, q.batch_shape), tg.inf, dtype=p.mean.dtype)


for _p, _others in _NEVER.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


# ---- means of p ------------------------------------------------------------------------------------------------------


def _x_log_x(x):
    return tg.xlogy(x, x)


def _mean_log(p):
    """The mean of log(x)."""
    if isinstance(p, Uniform):
        return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    if isinstance(p, Exponential):
        return -p.rate.log() - euler_constant
    return tg.digamma(p.concentration1) - tg.digamma(p.concentration1 + p.concentration0)  # of Beta


def _mean_exp(p, t):
    """The mean of exp(-t x)."""
    if isinstance(p, Uniform):
        return (tg.exp(-t * p.low) - tg.exp(-t * p.high)) / (t * (p.high - p.low))
    if isinstance(p, Normal):
        return tg.exp(-t * p.loc + (t * p.scale).square() / 2)
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    return (1 + t / p.rate) ** -p.concentration  # of Gamma


# ---- to each kind ----------------------------------------------------------------------------------------------------


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p, q):
    spread = (p.variance + (p.mean - q.loc).square()) / (2 * q.scale.square())
    return spread + q.scale.log() + math.log(2 * math.pi) / 2 - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
@register_kl(Uniform, Exponential)
def _to_exponential(p, q):
    inside = q.rate * p.mean - q.rate.log() - p.entropy()
    return tg.where(p.low < 0, tg.inf, inside) if isinstance(p, Uniform) else inside


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
@register_kl(Uniform, Gamma)
def _to_gamma(p, q):
    power = q.concentration
    scale = tg.lgamma(power) - power * q.rate.log()
    inside = scale + (1 - power) * _mean_log(p) + q.rate * p.mean - p.entropy()
    return tg.where(p.low < 0, tg.inf, inside) if isinstance(p, Uniform) else inside


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def _to_gumbel(p, q):
    above = tg.exp(q.loc / q.scale) * _mean_exp(p, q.scale.reciprocal())
    return q.scale.log() + (p.mean - q.loc) / q.scale + above - p.entropy()


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _to_uniform(p, q):
    return tg.where((q.low > 0) | (q.high < 1), tg.inf, (q.high - q.low).log() - p.entropy())


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p, q):
    inside = -p.mean * q.logits - tg.log1p(-q.probs) - q._log_scale() - p.entropy()
    return tg.where((p.low < 0) | (p.high > 1), tg.inf, inside) if isinstance(p, Uniform) else inside


@register_kl(Uniform, Beta)
def _uniform_to_beta(p, q):
    width = p.high - p.low
    mean_log_rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / width - 1
    a, b = q.concentration1, q.concentration0
    scale = tg.lgamma(a) + tg.lgamma(b) - tg.lgamma(a + b)
    inside = scale + (1 - a) * _mean_log(p) + (1 - b) * mean_log_rest - width.log()
    return tg.where((p.high > 1) | (p.low < 0), tg.inf, inside)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p, q):
    inside = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return tg.where(p.low < q.scale, tg.inf, inside)


@register_kl(Normal, Laplace)
def _normal_to_laplace(p, q):
    apart = p.loc - q.loc
    z = apart / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * tg.exp(-z.square() / 2) + apart * tg.erf(z / math.sqrt(2))
    return distance / q.scale + tg.log(2 * q.scale) - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p, q):
    return q.rate - p.probs * q.rate.log() - p.entropy()
