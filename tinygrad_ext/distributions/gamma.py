"""Distributions made of gamma variables: Gamma, Chi2, Beta, Dirichlet, InverseGamma."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .transformed import TransformedDistribution
from .transforms import PowerTransform
from .utils import broadcast_all


@boundary
class Gamma(ExponentialFamily):
    """The gamma distribution with the density ``x ** (concentration - 1) * exp(-rate * x)``, scaled.

    Raises:
        ValueError: a parameter is not positive, if arguments are checked.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self):
        """The mean."""
        return self.concentration / self.rate

    @property
    def mode(self):
        """The mode, zero for concentrations up to 1."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        """The variance."""
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        shape = self._extended_shape(sample_shape)
        drawn = tg._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        drawn.detach().clamp_(min=tg.finfo(drawn.dtype).tiny)  # zero has no logarithm
        return drawn

    def log_prob(self, value):
        """The logarithm of the density."""
        value = tg.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        value = self._checked(value)
        power, rate = self.concentration, self.rate
        return tg.xlogy(power, rate) + tg.xlogy(power - 1, value) - rate * value - tg.lgamma(power)

    def entropy(self):
        """The entropy."""
        power = self.concentration
        return power - self.rate.log() + tg.lgamma(power) + (1 - power) * tg.digamma(power)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return tg.lgamma(x + 1) + (x + 1) * tg.log(-y.reciprocal())

    def cdf(self, value):
        """The probability of what is not above ``value``; it has no derivative with respect to the concentration."""
        value = self._checked(value)
        return tg.special.gammainc(self.concentration, self.rate * value)


@boundary
class Chi2(Gamma):
    """The sum of ``df`` squares of standard normal variables.

    Raises:
        ValueError: ``df`` is not positive, if arguments are checked.
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(Chi2, _instance)
        batch_shape = tg.Size(batch_shape)
        new.concentration, new.rate = self.concentration.expand(batch_shape), self.rate.expand(batch_shape)
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2


def _Dirichlet_backward(x, concentration, grad_output):
    """PyTorch's name for the derivative of a draw to the concentration."""
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = tg._dirichlet_grad(x, concentration, total)
    return grad * (grad_output - (x * grad_output).sum(-1, True))


@boundary
class Dirichlet(ExponentialFamily):
    """Vectors of shares of 1, with ``concentration`` along the last dimension.

    Raises:
        ValueError: a number instead of a vector, or a parameter that is not positive.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self):
        """The mean."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        """The mode; where no concentration is above 1, a corner."""
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        low = (self.concentration < 1).all(dim=-1, keepdim=True)
        corner = tg.nn.functional.one_hot(mode.argmax(dim=-1), self.concentration.shape[-1]).to(mode)
        return tg.where(low, corner, mode)

    @property
    def variance(self):
        """The variance."""
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to the concentration."""
        return tg._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        """The logarithm of the density."""
        value, power = self._checked(value), self.concentration
        return tg.xlogy(power - 1, value).sum(-1) + tg.lgamma(power.sum(-1)) - tg.lgamma(power).sum(-1)

    def entropy(self):
        """The entropy."""
        power = self.concentration
        count, total = power.size(-1), power.sum(-1)
        around = tg.lgamma(power).sum(-1) - tg.lgamma(total) - (count - total) * tg.digamma(total)
        return around - ((power - 1) * tg.digamma(power)).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - tg.lgamma(x.sum(-1))


@boundary
class Beta(ExponentialFamily):
    """Numbers between 0 and 1 with the density ``x ** (concentration1 - 1) * (1 - x) ** (concentration0 - 1)``, scaled.

    Raises:
        ValueError: a parameter is not positive, if arguments are checked.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        both = tg.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = self._get_checked_instance(Beta, _instance)
        batch_shape = tg.Size(batch_shape)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def concentration1(self):
        """The power of x and one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self):
        """The power of 1 - x and one."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self):
        """The mean."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        """The mode."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        """The variance."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        """Draw samples with gradients to both parameters."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value):
        """The logarithm of the density."""
        value = self._checked(value)
        return self._dirichlet.log_prob(tg.stack([value, 1.0 - value], -1))

    def entropy(self):
        """The entropy."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return tg.lgamma(x) + tg.lgamma(y) - tg.lgamma(x + y)


@boundary
class InverseGamma(TransformedDistribution):
    """One over a gamma variable of the same parameters.

    Raises:
        ValueError: a parameter is not positive, if arguments are checked.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, minus_one, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self):
        """That of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """That of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self):
        """The mean, infinite for concentrations up to 1."""
        return tg.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self):
        """The mode."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        """The variance, infinite for concentrations up to 2."""
        power = self.concentration
        return tg.where(power > 2, self.rate.square() / ((power - 1).square() * (power - 2)), math.inf)

    def entropy(self):
        """The entropy."""
        power = self.concentration
        return power + self.rate.log() + power.lgamma() - (1 + power) * power.digamma()
