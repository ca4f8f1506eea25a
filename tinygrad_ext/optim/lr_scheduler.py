"""Learning rate schedules; see `schedule` for how they work together."""

import bisect
import math
from collections import Counter

from tinygrad_ext.core.call.boundary import boundary

from .composite import ChainedScheduler, SequentialLR
from .cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .plateau import ReduceLROnPlateau
from .schedule import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .schedule import LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

# the base's name before PyTorch 2.0, by which libraries still ask for it
_LRScheduler = LRScheduler


class _Recursive(LRScheduler):
    """A schedule that multiplies each value by ``_factor()``; None leaves it."""

    def get_lr(self):
        factor = self._factor()
        return [lr if factor is None else lr * factor for lr in self._lrs()]

    def _get_closed_form_lr(self):
        total = self._total_factor()
        return [base * total for base in self.base_lrs]


@boundary
class StepLR(_Recursive):
    """Multiply by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else None

    def _total_factor(self):
        return self.gamma ** (self.last_epoch // self.step_size)


@boundary
class MultiStepLR(_Recursive):
    """Multiply by ``gamma`` at each of the epochs ``milestones``."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        times = self.milestones[self.last_epoch]
        return self.gamma**times if times else None

    def _total_factor(self):
        return self.gamma ** bisect.bisect_right(sorted(self.milestones.elements()), self.last_epoch)


@boundary
class ExponentialLR(_Recursive):
    """Multiply by ``gamma`` every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return None if self._at_start else self.gamma

    def _total_factor(self):
        return self.gamma**self.last_epoch


@boundary
class ConstantLR(_Recursive):
    """Multiply by ``factor`` until epoch ``total_iters``."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1, got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _total_factor(self):
        return self.factor if self.last_epoch < self.total_iters else 1.0


@boundary
class LinearLR(_Recursive):
    """Multiply by a factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"Starting multiplicative factor expected to be greater than 0 and less or equal to 1, "
                f"got {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1, got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _total_factor(self):
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


@boundary
class PolynomialLR(_Recursive):
    """Fall to zero in ``total_iters`` epochs as ``(1 - epoch / total_iters) ** power``."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self._at_start or self.last_epoch > self.total_iters:
            return None
        now, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return (now / before) ** self.power

    def _total_factor(self):
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


@boundary
class CosineAnnealingLR(LRScheduler):
    """Fall to ``eta_min`` along half a cosine in ``T_max`` epochs (Loshchilov and Hutter, 2016)."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch, period, least = self.last_epoch, self.T_max, self.eta_min
        if self._at_start:
            return self._lrs()
        if self._step_count == 1:
            return self._get_closed_form_lr()
        if (epoch - 1 - period) % (2 * period) == 0:
            # The ratio below would be 0 / 0 here, at the bottom of the curve.
            up = (1 - math.cos(math.pi / period)) / 2
            return [lr + (base - least) * up for base, lr in zip(self.base_lrs, self._lrs())]
        ratio = (1 + math.cos(math.pi * epoch / period)) / (1 + math.cos(math.pi * (epoch - 1) / period))
        return [ratio * (lr - least) + least for lr in self._lrs()]

    def _get_closed_form_lr(self):
        share = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]


class _ByFunction(LRScheduler):
    """A schedule with a function of the epoch, one for all groups or one each."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        groups = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(functions) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(functions)}")
        self.lr_lambdas = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Return everything but the optimizer and functions; of a callable object its attributes are kept."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            dict(getattr(f, "__dict__", {})) if not hasattr(f, "__code__") else None for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` returned; functions stay ours."""
        state = dict(state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            if attributes is not None:
                function.__dict__.update(attributes)
        super().load_state_dict(state)


@boundary
class LambdaLR(_ByFunction):
    """Set the start value times ``lr_lambda(epoch)``."""

    def get_lr(self):
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


@boundary
class MultiplicativeLR(_ByFunction):
    """Multiply by ``lr_lambda(epoch)``."""

    def get_lr(self):
        if self._is_initial:
            return self._lrs()
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self._lrs())]
