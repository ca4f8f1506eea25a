"""When a profile records: a function from the number of a step to an action."""

import enum
import warnings

from tinygrad_ext.core.call.boundary import boundary


class ProfilerActivity(enum.Enum):
    """What is recorded: work of the CPU."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What a profile does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


@boundary
def supported_activities():
    """The activities that can be recorded, a set.

    >>> import tinygrad_ext as tg
    >>> tg.profiler.supported_activities() == {tg.profiler.ProfilerActivity.CPU}
    True
    """
    return {ProfilerActivity.CPU}


@boundary
def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function that says what a profile does in step n: cycles of wait, warmup and active steps, all of them ints.

    Args:
        repeat: cycles; 0: without end. skip_first: steps before the first one.
        skip_first_wait: if not 0, the first cycle does not wait.

    Raises AssertionError for negative numbers, or if no step is active.

    >>> from tinygrad_ext.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2)(n).name for n in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    numbers = {"wait": wait, "warmup": warmup, "repeat": repeat, "skip_first": skip_first}
    for name, value in {**numbers, "active": active}.items():
        least = name == "active"
        if value < least:
            raise AssertionError(f"schedule: {name} is {value}; expected at least {int(least)} steps")
    if warmup == 0:
        warnings.warn("schedule: without warmup steps the first recorded ones include what happens once", stacklevel=2)
    cycle = wait + warmup + active

    def action(step):
        if step < 0:
            raise AssertionError(f"schedule: the number of a step is {step}; expected 0 or more")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        at = step % cycle - wait
        if at < 0:
            return ProfilerAction.NONE
        if at < warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < warmup + active - 1 else ProfilerAction.RECORD_AND_SAVE

    return action
