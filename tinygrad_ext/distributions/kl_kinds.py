"""Divergences of two distributions of one kind, beyond those in kl.py."""

import tinygrad_ext as tg
from tinygrad_ext.autograd import grad

from .bounded import Pareto
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Binomial, Poisson
from .exp_family import ExponentialFamily
from .gamma import Beta, Dirichlet, Gamma
from .kl import kl_divergence, register_kl
from .multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_mahalanobis,
    _half_log_det,
    _low_rank_log_det,
    _low_rank_mahalanobis,
)
from .one_hot import OneHotCategorical
from .real_line import Gumbel
from .transformed import TransformedDistribution
from .utils import euler_constant, sum_rightmost


@register_kl(Beta, Beta)
def _beta(p, q):
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    scale = tg.lgamma(total) - tg.lgamma(b.sum(-1)) - (tg.lgamma(a) - tg.lgamma(b)).sum(-1)
    return scale + ((a - b) * (tg.digamma(a) - tg.digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + tg.log1p(-p.probs) - tg.log1p(-q.probs)
    return tg.where(p.total_count > q.total_count, tg.inf, p.total_count * each)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    own = p._log_scale() + tg.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + own - q._log_scale() - tg.log1p(-q.probs)


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    scale = b * (p.rate / q.rate).log() + tg.lgamma(b) - tg.lgamma(a)
    return scale + (a - b) * tg.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    above = tg.exp((1 + ratio).lgamma() - apart)
    return apart - ratio.log() + ratio * euler_constant + above - (1 + euler_constant)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    inside = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return tg.where(p.scale < q.scale, tg.inf, inside)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return kl_divergence(p._categorical, q._categorical)


def _same_size(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between {type(p).__name__} and {type(q).__name__} with different event shapes "
            f"cannot be computed: {p.event_shape} and {q.event_shape}"
        )


def _log_det(d):
    if isinstance(d, LowRankMultivariateNormal):
        return _low_rank_log_det(d._unbroadcasted_cov_diag, d._capacitance_tril)
    return 2 * _half_log_det(d._unbroadcasted_scale_tril)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _to_normal_vectors(p, q):
    _same_size(p, q)
    factor = q._unbroadcasted_scale_tril
    own = p.scale_tril if isinstance(p, LowRankMultivariateNormal) else p._unbroadcasted_scale_tril
    trace = tg.linalg.solve_triangular(factor, own, upper=False).square().sum((-2, -1))
    far = _batch_mahalanobis(factor, q.loc - p.loc)
    return (_log_det(q) - _log_det(p) + trace + far - p.event_shape[0]) / 2


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _to_low_rank(p, q):
    _same_size(p, q)
    trace = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    far = _low_rank_mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril
    )
    return (_log_det(q) - _log_det(p) + trace + far - p.event_shape[0]) / 2


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms:
        raise NotImplementedError("KL of TransformedDistributions with different transforms")
    if p.event_shape != q.event_shape:
        raise NotImplementedError("KL of TransformedDistributions with different event shapes")
    taken = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), taken)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the normalizer, where both are of one type."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed: "
            f"{type(p).__name__} and {type(q).__name__} need a function of their own; add it with register_kl"
        )
    ours = [param.detach().requires_grad_() for param in p._natural_params]
    theirs = q._natural_params
    own = p._log_normalizer(*ours)
    slopes = grad(own.sum(), ours, create_graph=True)
    result = q._log_normalizer(*theirs) - own
    for a, b, slope in zip(ours, theirs, slopes):
        result = result - sum_rightmost((b - a) * slope, a.dim() - len(q.batch_shape))
    return result
