"""The normal distribution's sister on a circle."""

import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

# Abramowitz and Stegun, 9.8.1 to 9.8.4: the modified Bessel functions of order 0 and 1, below 3.75 and from there on
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (
        0.39894228,
        0.1328592e-1,
        0.225319e-2,
        -0.157565e-2,
        0.916281e-2,
        -0.2057706e-1,
        0.2635537e-1,
        -0.1647633e-1,
        0.392377e-2,
    ),
    (
        0.39894228,
        -0.3988024e-1,
        -0.362018e-2,
        0.163801e-2,
        -0.1031555e-1,
        0.2282967e-1,
        -0.2895312e-1,
        0.1787654e-1,
        -0.420059e-2,
    ),
)


def _polynomial(y, coefficients):
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + y * result
    return result


def _log_bessel(x, order):
    """The logarithm of the modified Bessel function of order 0 or 1, of positive numbers."""
    small = _polynomial((x / 3.75).square(), _SMALL[order])
    small = x.abs().log() + small.log() if order else small.log()
    large = x - x.log() / 2 + _polynomial(3.75 / x, _LARGE[order]).log()
    return tg.where(x < 3.75, small, large)


@boundary
class VonMises(Distribution):
    """Angles around ``loc``, the closer the larger ``concentration``.

    Raises:
        ValueError: ``concentration`` is not positive, if arguments are checked.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value):
        """The logarithm of the density."""
        around = self.concentration * tg.cos(self._checked(value) - self.loc)
        return around - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _proposal_r(self):
        concentration = self.concentration.double()  # the root of a difference of squares loses half of the digits
        tau = 1 + (1 + 4 * concentration.square()).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
        return tg.where(
            concentration < 1e-5, concentration.reciprocal() + concentration, (1 + rho.square()) / (2 * rho)
        )

    def sample(self, sample_shape=()):
        """Draw angles between -pi and pi, by accepting and rejecting (Best and Fisher, 1979)."""
        with tg.no_grad():
            shape = self._extended_shape(sample_shape)
            loc, concentration = self.loc.double(), self.concentration.double()
            proposal, angle = self._proposal_r, loc.new_zeros(shape)
            done = tg.zeros(shape, dtype=tg.bool, device=loc.device)
            while not bool(done.all()):
                u1, u2, u3 = tg.rand((3,) + tuple(shape), dtype=loc.dtype, device=loc.device).unbind()
                z = tg.cos(math.pi * u1)
                f = (1 + proposal * z) / (proposal + z)
                c = concentration * (proposal - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = tg.where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def expand(self, batch_shape, _instance=None):
        """The same distribution with expanded parameters."""
        new = super().expand(batch_shape, self._get_checked_instance(VonMises, _instance))
        new.__dict__.pop("_proposal_r", None)
        return new

    @property
    def mean(self):
        """The location."""
        return self.loc

    @property
    def mode(self):
        """The location."""
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()
