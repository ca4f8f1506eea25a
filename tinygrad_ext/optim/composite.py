"""Schedules made of other schedules."""

import bisect

from tinygrad_ext.core.call.boundary import boundary

from .plateau import ReduceLROnPlateau
from .schedule import LRScheduler, set_lr


class _Composite(LRScheduler):
    """A schedule made of others, whose states are saved with its own."""

    def state_dict(self):
        """Return everything but the optimizer, with one entry per inner schedule."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` returned."""
        state = dict(state_dict)
        for scheduler, inner in zip(self._schedulers, state.pop("_schedulers")):
            scheduler.load_state_dict(inner)
        super().load_state_dict(state)


@boundary
class SequentialLR(_Composite):
    """Use one schedule after the other; ``milestones`` are the epochs at which the next one starts at its epoch 0.

    Raises:
        ValueError: not one milestone less than schedules, or one of another optimizer.
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        _check_inner(optimizer, schedulers, "SequentialLR")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got {len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule made its first step when it was constructed; only the first one's shall count.
        for group in optimizer.param_groups:
            set_lr(group, group["initial_lr"])
        for scheduler in schedulers:
            _undo(scheduler)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self):
        """Go on by one epoch."""
        self.last_epoch += 1
        place = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


@boundary
class ChainedScheduler(_Composite):
    """Step several schedules together, so that their factors multiply."""

    def __init__(self, schedulers, optimizer=None):
        schedulers = list(schedulers)
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got none")
        optimizer = optimizer or schedulers[0].optimizer
        _check_inner(optimizer, schedulers, "ChainedScheduler")
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._lrs()

    def step(self):
        """Step each schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._lrs()


def _undo(scheduler):
    """Take back the first step of a schedule, or of those that it puts together."""
    if isinstance(scheduler, _Composite):
        for inner in scheduler._schedulers:
            _undo(inner)
    else:
        scheduler.last_epoch -= 1


def _check_inner(optimizer, schedulers, owner):
    if not schedulers:
        raise ValueError(f"{owner} expects at least one scheduler, but got no scheduler")
    for place, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{owner} at index {place} should have `optimizer` as its attribute")
        if isinstance(scheduler, ReduceLROnPlateau) and owner == "SequentialLR":
            raise ValueError(f"{owner} does not support `ReduceLROnPlateau` scheduler: its step needs a metric")
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{owner} expects all schedulers to belong to the same optimizer, but index {place} does not"
            )
