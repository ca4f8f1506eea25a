"""The base of the distributions: shapes, expansion, checks of parameters and of samples."""

import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from . import constraints
from .utils import all_true, lazy_property


def _as_size(shape):
    """A Size; what is none, as the shapes of several values that a subclass draws, stays as it is."""
    try:
        return tg.Size(shape)
    except TypeError:
        return shape


def _warn_unchecked(distribution, name, what_to_do):
    kind = type(distribution)
    warnings.warn(
        f"{kind} does not define `{name}`, so nothing is checked by it: {what_to_do} or pass validate_args=False",
        UserWarning,
        stacklevel=4,
    )


@boundary
class Distribution:
    """Base of the distributions.

    A subclass sets ``arg_constraints`` and ``support``, and defines ``log_prob`` and ``rsample`` or ``sample``. The
    names in ``arg_constraints`` are its parameters, attributes that `expand` expands.

    Args:
        batch_shape: shape of independent distributions.
        event_shape: shape of one sample of one of them.
        validate_args: check parameters now and samples later; None for the default of the class.

    Raises:
        ValueError: a parameter does not satisfy its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether parameters and samples are checked where nothing is said.

        Raises:
            ValueError: ``value`` is no bool.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args expects True or False, but got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = _as_size(batch_shape), _as_size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self):
        try:
            named = self.arg_constraints
        except NotImplementedError:
            _warn_unchecked(self, "arg_constraints", "set it to a dict of constraints, or to {},")
            return
        for name, constraint in named.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # computed from the one that was given
            value = getattr(self, name)
            if not all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape, _instance=None):
        """The same distribution with parameters expanded to ``batch_shape``, without copies."""
        new = self._get_checked_instance(type(self), _instance)
        batch_shape, named = tg.Size(batch_shape), self.arg_constraints
        for name, value in self.__dict__.items():
            if name in named and isinstance(value, tg.Tensor):
                value = value.expand(batch_shape + value.shape[len(self._batch_shape) :])
            if name in named or not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = value
        new._batch_shape = batch_shape
        return new

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self):
        """Shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self):
        """Shape of one sample of one of them."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """The constraint of each parameter, by its name."""
        raise NotImplementedError(f"{type(self).__name__} does not define arg_constraints")

    @property
    def support(self):
        """Where samples lie."""
        raise NotImplementedError(f"{type(self).__name__} does not define support")

    @property
    def mean(self):
        """The mean of each distribution."""
        raise NotImplementedError(f"{type(self).__name__} does not define mean")

    @property
    def mode(self):
        """The likeliest sample of each distribution."""
        raise NotImplementedError(f"{type(self).__name__} does not define mode")

    @property
    def variance(self):
        """The variance of each distribution."""
        raise NotImplementedError(f"{type(self).__name__} does not define variance")

    @property
    def stddev(self):
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Draw samples of shape ``sample_shape + batch_shape + event_shape``, without gradients."""
        with tg.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n):
        """Draw n samples, or batches of them; an older word for ``sample((n,))``."""
        warnings.warn("sample_n(n) is deprecated: call sample((n,))", UserWarning, stacklevel=2)
        return self.sample((n,))

    def rsample(self, sample_shape=()):
        """Draw samples through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} does not define rsample: use sample and log_prob")

    def log_prob(self, value):
        """The logarithm of the density or probability at each event of ``value``."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_prob")

    def cdf(self, value):
        """The probability of what is not above ``value``."""
        raise NotImplementedError(f"{type(self).__name__} does not define cdf")

    def icdf(self, value):
        """Where the cdf is ``value``."""
        raise NotImplementedError(f"{type(self).__name__} does not define icdf")

    def enumerate_support(self, expand=True):
        """All samples that there are, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not define enumerate_support")

    def entropy(self):
        """The entropy of each distribution, in nats."""
        raise NotImplementedError(f"{type(self).__name__} does not define entropy")

    def perplexity(self):
        """The exponential of the entropy."""
        return tg.exp(self.entropy())

    def _extended_shape(self, sample_shape=()):
        own = self._batch_shape + self._event_shape if self._event_shape else self._batch_shape
        return own if isinstance(sample_shape, tuple) and not sample_shape else tg.Size(sample_shape) + own

    def _validate_sample(self, value):
        if not isinstance(value, tg.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = value.shape[value.dim() - len(self._event_shape) :]
        if events != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {self._event_shape}."
            )
        shape = self._batch_shape + self._event_shape
        for ours, theirs in zip(reversed(shape), reversed(value.shape)):
            if 1 not in (ours, theirs) and ours != theirs:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {tuple(shape)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            _warn_unchecked(self, "support", "set it to a constraint,")
            return
        if not all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _checked(self, value):
        """The value, after the check of samples if that is on."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self):
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"
