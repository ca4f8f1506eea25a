"""Probability distributions: samples, densities, entropies, divergences.

Loaded when first asked for; ``import tinygrad_ext`` does not pay for it.
"""

from ..errors import refuse_unknown
from . import constraints, kl, transforms, utils
from . import kl_kinds as kl_kinds
from . import kl_pairs as kl_pairs
from .bounded import Exponential, Pareto, Uniform, Weibull
from .constraint_registry import biject_to, transform_to
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Binomial, NegativeBinomial, Poisson
from .discrete import Bernoulli, Categorical, Geometric
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .from_others import GeneralizedPareto, Kumaraswamy, LogisticNormal, LogNormal
from .gamma import Beta, Chi2, Dirichlet, Gamma, InverseGamma
from .independent import Independent
from .kl import kl_divergence, register_kl
from .matrices import LKJCholesky, Wishart
from .mixture import MixtureSameFamily
from .multivariate import LowRankMultivariateNormal, MultivariateNormal
from .one_hot import Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough
from .ratios import FisherSnedecor, StudentT
from .real_line import Cauchy, Gumbel, HalfCauchy, HalfNormal, Laplace, Normal
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .transformed import TransformedDistribution
from .transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from .von_mises import VonMises

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
    "utils",
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

__getattr__ = refuse_unknown(__name__)
