"""GradScaler: multiplies a loss, so that small gradients do not vanish in float16, and divides the gradients again.

The factor grows while all gradients are finite, and a step whose gradients are not is left out and makes it smaller.
"""

import enum
import warnings
from collections import defaultdict

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.registry import functions

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """Where one optimizer is between two calls of `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _ready():
    """The stage of an optimizer that has not been met: a function by name, so that a scaler can be pickled."""
    return OptState.READY


class GradScaler:
    """Scales losses against underflow in float16.

        scaler = amp.GradScaler("cpu")
        scaler.scale(loss).backward()
        scaler.step(optimizer)              # left out where a gradient is not finite
        scaler.update()

    Args:
        device: "cpu", or "cuda", which is not here and for which it goes off with a warning.
        init_scale: the factor in the beginning.
        growth_factor: what it is multiplied by after growth_interval steps without an infinite gradient.
        backoff_factor: what it is multiplied by after a step with one.
        growth_interval: number of steps.
        enabled: False makes every method the plain step.

    Raises AssertionError unless growth_factor > 1 and backoff_factor < 1.
    """

    def __init__(
        self,
        device="cuda",
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device, self._enabled = str(device), bool(enabled)
        if self._enabled and self._device != "cpu":
            self._enabled = False
            warnings.warn(
                f"GradScaler(): device_type of '{device}' was given, but {self._device.upper()} is not available. "
                "Disabling",
                UserWarning,
                stacklevel=2,
            )
        if self._enabled:
            assert growth_factor > 1.0, "The growth factor must be > 1.0."
            assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
        self._scale, self._growth_tracker = float(init_scale), 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._forget()

    def _forget(self):
        self._stage = defaultdict(_ready)
        self._infinite = {}  # id of an optimizer -> whether a gradient of its was not finite

    def scale(self, outputs):
        """outputs times the factor: a tensor, or a nest of lists and tuples of tensors."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            # in the tensor's dtype the factor may be infinite: a float32 loss is the usual one
            return outputs * functions["tensor"](self._scale, dtype=outputs.dtype)
        if isinstance(outputs, (list, tuple)):
            parts = [self.scale(o) for o in outputs]
            return type(outputs)(*parts) if hasattr(outputs, "_fields") else type(outputs)(parts)
        raise ValueError(
            f"outputs must be a Tensor or an iterable of Tensors, not {type(outputs).__name__}: pass the loss"
        )

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer's parameters by the factor, at most once between two updates.

        Raises RuntimeError when that was done already, or after the step; ValueError for gradients in float16.
        """
        if not self._enabled:
            return
        stage = self._stage[id(optimizer)]
        if stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step(): call it before, or call update() first.")
        infinite, by = False, 1.0 / self._scale
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if str(p.grad.dtype) == "torch.float16":
                    raise ValueError("Attempting to unscale FP16 gradients: keep the parameters in float32.")
                grad = p.grad.detach()
                grad = grad._values() if grad.is_sparse else grad
                infinite |= not grad.isfinite().all().item()
                grad.mul_(by)
        self._infinite[id(optimizer)] = infinite
        self._stage[id(optimizer)] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """Unscale the gradients, unless that was done, and call ``optimizer.step(...)`` where all are finite.

        Returns what the step does; None where it was left out.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        stage = self._stage[id(optimizer)]
        if stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage is OptState.READY:
            self.unscale_(optimizer)
        assert any(p.grad is not None for g in optimizer.param_groups for p in g["params"]), (
            "No inf checks were recorded for this optimizer."
        )
        self._stage[id(optimizer)] = OptState.STEPPED
        return None if self._infinite[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        """Make the factor smaller after a gradient that was not finite, else larger after growth_interval steps.

        new_scale: a number, or a tensor with one element, that becomes the factor instead.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            assert self._infinite, "No inf checks were recorded prior to update."
            if any(self._infinite.values()):
                self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._forget()

    def is_enabled(self):
        """Whether it scales."""
        return self._enabled

    def get_scale(self):
        """The factor; 1.0 where it is off."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self):
        """What the factor is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Set it."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the factor is multiplied by after a gradient that was not finite."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Set it."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """Steps with finite gradients before the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Set it."""
        self._growth_interval = new_interval

    def state_dict(self):
        """Scale, growth_factor, backoff_factor, growth_interval and _growth_tracker; empty where it is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave. Does nothing where it is off; RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
