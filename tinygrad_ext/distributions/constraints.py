"""What a parameter may be and where samples lie: objects with ``check(value)``, one truth value per event."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .constraint_base import Constraint
from .matrix_constraints import (
    _CorrCholesky,
    _LowerCholesky,
    _LowerTriangular,
    _PositiveDefinite,
    _PositiveSemidefinite,
    _Square,
    _Symmetric,
)

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class _Dependent(Constraint):
    """Stands for what depends on other values; it cannot be checked by itself."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self):
        """Whether samples are whole numbers, if that was said."""
        return _said("is_discrete", self._is_discrete)

    @property
    def event_dim(self):
        """How many last dimensions are one event, if that was said."""
        return _said("event_dim", self._event_dim)

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value):
        """Refuse: what it depends on is not known here."""
        raise ValueError("Cannot determine validity of dependent constraint")


def _said(name, value):
    if value is NotImplemented:
        raise NotImplementedError(f".{name} cannot be determined statically")
    return value


class _DependentProperty(property, _Dependent):
    """A property that gives a constraint for an instance, and says on the class what does not depend on it."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """Events of another constraint, some batch dimensions of which are taken into the event."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        """As the inner one."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        """Those of the inner one, and the batch dimensions taken."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        """Whether all inner events are inside."""
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        if self.reinterpreted_batch_ndims == 1:
            return result.all(-1)
        kept = result.dim() - self.reinterpreted_batch_ndims
        return result.reshape(result.shape[:kept] + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Bounded(Constraint):
    """Values between bounds, by the name of the attribute that holds each."""

    def __repr__(self):
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__[1:]}({bounds})"


class _GreaterThan(_Bounded):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        """Whether it is above."""
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    def check(self, value):
        """Whether it is above or equal."""
        return self.lower_bound <= value


class _LessThan(_Bounded):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        """Whether it is below."""
        return value < self.upper_bound


class _Interval(_Bounded):
    def __init__(self, lower_bound, upper_bound):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value):
        """Whether it is between, ends included."""
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value):
        """Whether it is between, the upper end excluded."""
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value):
        """Whether it is a whole number between, ends included."""
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True

    def check(self, value):
        """Whether it is a whole number, the bound or above."""
        return (value % 1 == 0) & super().check(value)


class _IntegerLessThan(_LessThan):
    is_discrete = True

    def check(self, value):
        """Whether it is a whole number, the bound or below."""
        return (value % 1 == 0) & (value <= self.upper_bound)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        """Whether the counts sum to the bound or less."""
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Joined(Constraint):
    """Several constraints, each for a part along a dimension; each part has one size or is one slice."""

    def __init__(self, cseq, dim=0, lengths=None):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("cat and stack: every element of cseq must be a Constraint")
        self.cseq = list(cseq)
        self.dim = dim
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)

    @property
    def is_discrete(self):
        """Whether any part is."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        """The largest of the parts."""
        return max(c.event_dim for c in self.cseq)


class _Cat(_Joined):
    def check(self, value):
        """Check each part."""
        parts = value.split(self.lengths, self.dim)
        return tg.cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class _Stack(_Joined):
    def check(self, value):
        """Check each slice."""
        return tg.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)

    @property
    def event_dim(self):
        """The largest of the parts, and the new dimension where it falls into the event."""
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        """Whether it is 0 or 1."""
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        """Whether there is a single 1 among zeros."""
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Real(Constraint):
    def check(self, value):
        """Whether it is a number."""
        return value == value


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        """Whether nothing is negative and the sum is 1."""
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class MixtureSameFamilyConstraint(Constraint):
    """Where the components of a mixture lie; samples have the component's dimension in front of the event."""

    def __init__(self, base_constraint):
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        """As the components."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        """As the components."""
        return self.base_constraint.event_dim

    def check(self, value):
        """Whether all components could have drawn it."""
        ahead = value.dim() - self.event_dim
        inside = self.base_constraint.check(value.unsqueeze(ahead))
        if inside.dim() < 1:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        kept = value.dim() - self.event_dim
        return inside.reshape(tuple(inside.shape[:kept]) + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


@boundary
def is_dependent(constraint):
    """Whether a constraint depends on other values, and cannot be checked by itself."""
    return isinstance(constraint, _Dependent)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
real = _Real()
real_vector = independent(real, 1)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
unit_interval = _Interval(0.0, 1.0)
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
multinomial = _Multinomial
cat = _Cat
stack = _Stack
