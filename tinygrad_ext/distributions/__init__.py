"""Probability distributions: samples, densities, entropies, divergences.

Loaded when first asked for; ``import tinygrad_ext`` does not pay for it.
"""

from ..errors import refuse_unknown
from . import constraints, kl, utils
from .bounded import Exponential, Pareto, Uniform, Weibull
from .discrete import Bernoulli, Categorical, Geometric
from .distribution import Distribution
from .independent import Independent
from .kl import kl_divergence, register_kl
from .real_line import Cauchy, Gumbel, HalfCauchy, HalfNormal, Laplace, Normal

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "Laplace",
    "Normal",
    "Pareto",
    "Uniform",
    "Weibull",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
    "utils",
]

__getattr__ = refuse_unknown(__name__)
