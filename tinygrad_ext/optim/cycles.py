"""Schedules that go up and down again, some with the momentum against them."""

import functools
import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

from .schedule import LRScheduler, set_lr


def cosine(start, end, share):
    """A value between two, on half a cosine."""
    return end + (start - end) / 2 * (math.cos(math.pi * share) + 1)


def line(start, end, share):
    """A value between two, on a line."""
    return (end - start) * share + start


ANNEALING = {"cos": cosine, "linear": line}


def check_strategy(name):
    """Raise ValueError for a way of annealing that there is not."""
    if name not in ANNEALING:
        raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {name}")


def per_group(name, values, optimizer):
    """One value for each group; a list must have as many. Tensors are copied: the caller may write to them, and so may
    the optimizer whose lr one is.

    Raises:
        ValueError: it has not.
    """
    groups = len(optimizer.param_groups)
    if not isinstance(values, (list, tuple)):
        values = [values] * groups
    if len(values) != groups:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups, {groups}; it has {len(values)}")
    return [value.clone() if isinstance(value, tg.Tensor) else value for value in values]


def _uses_beta(optimizer):
    """Whether the optimizer's momentum is its first beta.

    Raises:
        ValueError: it has no momentum at all.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            f"optimizer must support momentum or beta1 with `cycle_momentum` option enabled; "
            f"{type(optimizer).__name__} does not: pass cycle_momentum=False"
        )
    return "betas" in optimizer.defaults


def _set_momentum(group, value, in_betas):
    if in_betas:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


@boundary
class CosineAnnealingWarmRestarts(LRScheduler):
    """Fall to ``eta_min`` along half a cosine, again and again (Loshchilov and Hutter, 2016).

    Args:
        optimizer: whose groups are changed.
        T_0: epochs until the first restart.
        T_mult: factor of that number after each.
        eta_min: the least value.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: ``T_0`` or ``T_mult`` is no positive integer, or ``eta_min`` no number.
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min).__name__}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Return the value of each group at ``T_cur`` epochs of ``T_i``."""
        share = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]

    def step(self, epoch=None):
        """Go on by one epoch, or to ``epoch``, which may be a fraction, as after part of one.

        Raises:
            ValueError: a negative ``epoch``.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        for group, value in zip(self.optimizer.param_groups, self.get_lr()):
            set_lr(group, value)
        self._last_lr = self._lrs()

    def _go_to(self, epoch):
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts


@boundary
class CyclicLR(LRScheduler):
    """Go from ``base_lr`` to ``max_lr`` and back, again and again (Smith, 2015); ``step`` is called after each batch.

    Args:
        optimizer: whose groups are changed.
        base_lr, max_lr: the ends, one or one per group.
        step_size_up, step_size_down: batches of the way up and of the way down (None: as many).
        mode: ``"triangular"``; ``"triangular2"`` halves the way after each cycle; ``"exp_range"`` multiplies it by
            ``gamma`` with each batch.
        gamma: see ``mode``.
        scale_fn: a function in the place of ``mode``,
        scale_mode: of the number of the cycle (``"cycle"``) or of the batch (``"iterations"``).
        cycle_momentum: move momentum, or the first beta, from ``max_momentum`` to ``base_momentum`` and back.
        base_momentum, max_momentum: one or one per group.
        last_epoch: the number of the last batch.

    Raises:
        ValueError: an unknown ``mode``, lists of another length, or an optimizer without momentum.
    """

    def __init__(
        self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0,
        scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1,
    ):  # fmt: skip
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        base_lrs = per_group("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                set_lr(group, lr)
        self.max_lrs = per_group("max_lr", max_lr, optimizer)
        step_size_down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + step_size_down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: {mode!r}; use triangular, triangular2, exp_range")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta(optimizer)
            self.base_momentums = per_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = per_group("max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, self.max_momentums, self.base_momentums):
                    _set_momentum(group, high, self.use_beta1)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """The factor of the way from base to max, in cycle or after batch number ``x``."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    @property
    def _scale_fn_ref(self):
        """The function of the mode."""
        if self.mode == "exp_range":
            return functools.partial(self._exp_range_scale_fn, self.gamma)
        return self._triangular2_scale_fn if self.mode == "triangular2" else self._triangular_scale_fn

    @staticmethod
    def _triangular_scale_fn(x):
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x):
        return 1 / 2.0 ** (x - 1)

    @staticmethod
    def _exp_range_scale_fn(gamma, x):
        return gamma**x

    def get_lr(self):
        """Return the value of each group after ``last_epoch`` batches; the momentum is set on the way."""
        cycles = self.last_epoch / self.total_size
        cycle = math.floor(1 + cycles)
        place = 1 + cycles - cycle
        share = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                _set_momentum(group, high - (high - low) * share * scale, self.use_beta1)
        return [low + (high - low) * share * scale for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """Return everything but the optimizer; of ``scale_fn`` the attributes, if it is an object that has some."""
        state = super().state_dict()
        function = state["_scale_fn_custom"]
        if function is not None:
            state["_scale_fn_custom"] = None if hasattr(function, "__code__") else dict(vars(function))
        return state

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` returned; the function stays ours."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        if attributes is not None and self._scale_fn_custom is not None:
            vars(self._scale_fn_custom).update(attributes)
        super().load_state_dict(state)


@boundary
class OneCycleLR(LRScheduler):
    """Go up to ``max_lr`` and far down once (Smith and Topin, 2017); ``step`` is called after each batch.

    Args:
        optimizer: whose groups are changed.
        max_lr: the top, one or one per group.
        total_steps: batches in all; or give ``epochs`` and ``steps_per_epoch``.
        pct_start: share of the way up.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: move momentum, or the first beta, from ``max_momentum`` to ``base_momentum`` and back.
        base_momentum, max_momentum: one or one per group.
        div_factor: the start is ``max_lr / div_factor``,
        final_div_factor: and the end the start over this.
        three_phase: come down to the start in as many batches as it went up, and then go on to the end.
        last_epoch: the number of the last batch.

    Raises:
        ValueError: no number of batches, an option out of range, no momentum, or more steps than said.
    """

    def __init__(
        self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
        anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
        final_div_factor=1e4, three_phase=False, last_epoch=-1,
    ):  # fmt: skip
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        check_strategy(anneal_strategy)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        tops = per_group("max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta(optimizer)
            highs = per_group("max_momentum", max_momentum, optimizer)
            lows = per_group("base_momentum", base_momentum, optimizer)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, highs, lows):
                    _set_momentum(group, high, self.use_beta1)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Return the value of each group after ``last_epoch`` batches; the momentum is set on the way."""
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"Tried to step {at} times. The specified number of total steps is {self.total_steps}")
        start = 0
        for phase in self._schedule_phases:
            if at <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        share = (at - start) / (phase["end_step"] - start)
        between = self._anneal_func
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, between(*ends, share), self.use_beta1)
        return [
            between(group[phase["start_lr"]], group[phase["end_lr"]], share) for group in self.optimizer.param_groups
        ]

    _annealing_cos, _annealing_linear = staticmethod(cosine), staticmethod(line)

    def _anneal_func(self, start, end, pct):
        """A value between two; states of old have ``anneal_func`` itself, not its name."""
        kind = getattr(self, "_anneal_func_type", None)
        return (self.anneal_func if kind is None else ANNEALING[kind])(start, end, pct)


def _total(total_steps, epochs, steps_per_epoch):
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total_steps} if total_steps is not None else {
        "epochs": epochs, "steps_per_epoch": steps_per_epoch
    }  # fmt: skip
    product = 1
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        product *= value
    return product


def _phases(total, pct_start, three_phase):
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    up = (float(pct_start * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if three_phase:
        down = (float(2 * pct_start * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        rows = up, down, (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
    else:
        rows = up, (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
    return [dict(zip(names, row)) for row in rows]
