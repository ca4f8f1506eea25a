"""The base of the learning rate schedules.

A schedule sets each group's ``lr`` once when it is made and once per ``step``. Most compute the
new value from the present one, so that several can act on one optimizer; ``_get_closed_form_lr``
gives the value at any epoch from the start value, and is what ``step(epoch)`` uses.
"""

import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .optimizer import Optimizer

# a name that schedules of libraries warn with
EPOCH_DEPRECATION_WARNING = "The epoch parameter in `scheduler.step()` is deprecated; call step() once per epoch."


def set_lr(group, value):
    """Assign a group's ``lr``; a tensor there keeps its identity."""
    if isinstance(group["lr"], tg.Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


@boundary
class LRScheduler:
    """Base of the schedules. A subclass defines ``get_lr``, the list of values for ``last_epoch``.

    Args:
        optimizer: whose groups are changed.
        last_epoch: -1 to start; else the epoch to go on from, for which each group has an ``initial_lr``.

    Raises:
        TypeError: ``optimizer`` is no Optimizer.
        KeyError: going on without ``initial_lr``.
    """

    _is_initial = False
    _get_lr_called_within_step = False

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, tg.Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler "
                    f"with last_epoch >= 0, got last_epoch={last_epoch}; load the optimizer's state first"
                )
        self.optimizer = optimizer
        optimizer._step_when_scheduled = vars(optimizer).get("step")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    @property
    def _at_start(self):
        """Whether this is the first step, which leaves the value that a resumed optimizer brings."""
        return self._is_initial or self.last_epoch == 0

    def _lrs(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_lr(self):
        """Return the value of each group for ``last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr(self)")

    def get_last_lr(self):
        """Return the values that were set last."""
        return self._last_lr

    def step(self, epoch=None):
        """Go on by one epoch, or to ``epoch`` (deprecated), and set the values."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self):
        """UserWarning before the second value of a schedule where no step was seen that used the first."""
        own = vars(self.optimizer).get("step")
        if own is not getattr(self.optimizer, "_step_when_scheduled", own):
            told = (
                "Seems like `optimizer.step()` has been overridden after the schedule was made: make the schedule "
                "after that, or whether the steps come in order is not seen"
            )
        elif not self.optimizer._opt_called and own is None:
            told = (
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: call them in the opposite "
                "order, or the first value of the schedule is never used."
            )
        else:
            return
        warnings.warn(told, UserWarning, stacklevel=3)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
            values = self._get_closed_form_lr() if closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values):
            set_lr(group, value)
        self._last_lr = self._lrs()

    def state_dict(self):
        """Return everything but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)
