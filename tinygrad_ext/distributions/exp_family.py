"""The exponential family: densities ``h(x) exp(<t(x), theta> - F(theta))``."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .distribution import Distribution
from .utils import sum_rightmost


@boundary
class ExponentialFamily(Distribution):
    """Base of the distributions with natural parameters.

    A subclass gives ``_natural_params``, a tuple of tensors, ``_log_normalizer`` of them and ``_mean_carrier_measure``.
    """

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{type(self).__name__} does not define _natural_params")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__} does not define _log_normalizer")

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(f"{type(self).__name__} does not define _mean_carrier_measure")

    def entropy(self):
        """The entropy, from the derivative of the normalizer: the mean of t(x)."""
        with tg.enable_grad():
            params = [param.detach().requires_grad_() for param in self._natural_params]
            normalizer = self._log_normalizer(*params)
            means = tg.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = -self._mean_carrier_measure + normalizer
        for param, mean in zip(params, means):
            result = result - sum_rightmost(param * mean, param.dim() - len(self._batch_shape))
        return result
