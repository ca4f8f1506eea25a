"""A schedule that waits for a metric to stop improving."""

import math

from tinygrad_ext.core.call.boundary import boundary

from .optimizer import Optimizer
from .schedule import LRScheduler


@boundary
class ReduceLROnPlateau(LRScheduler):
    """Multiply the learning rates by ``factor`` when ``step(metric)`` saw no progress for ``patience`` epochs.

    Args:
        optimizer: whose groups are changed.
        mode: ``"min"`` if less is better, ``"max"`` if more is.
        factor: below one.
        patience: epochs without progress that are allowed.
        threshold: progress smaller than this does not count,
        threshold_mode: as a share of the best (``"rel"``) or as a difference (``"abs"``).
        cooldown: epochs after a reduction during which nothing is counted.
        min_lr: lower bound, one or one per group.
        eps: a change smaller than this is not made.
    """

    def __init__(
        self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel",
        cooldown=0, min_lr=0, eps=1e-8,
    ):  # fmt: skip
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, got {factor}")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown! Use 'min' or 'max'.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown! Use 'rel' or 'abs'.")
        self.optimizer = optimizer
        self.factor = factor
        self.default_min_lr = min_lr
        self.min_lrs = self._per_group(min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _per_group(self, min_lr, error=ValueError):
        groups = len(self.optimizer.param_groups)
        if not isinstance(min_lr, (list, tuple)):
            return [min_lr] * groups
        if len(min_lr) != groups:
            raise error(
                f"expected {groups} min_lrs, got {len(min_lr)}. The number of param groups in the `optimizer` "
                f"({groups}) differs from that of `min_lrs`: give one for each"
            )
        return list(min_lr)

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        """Whether epochs are not counted at the moment."""
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        """Whether the metric ``a`` is progress over ``best``."""
        sign = 1.0 if self.mode == "min" else -1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 - sign * self.threshold)
        else:
            bound = best - sign * self.threshold
        return a < bound if self.mode == "min" else a > bound

    def step(self, metrics, epoch=None):
        """Count one epoch that ended with the metric ``metrics``, a number or a 0-dim tensor."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _reduce_lr(self, epoch):
        if len(self.min_lrs) != len(self.optimizer.param_groups):
            self.min_lrs = self._per_group(self.default_min_lr, RuntimeError)
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                group["lr"] = new
