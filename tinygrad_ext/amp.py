"""Mixed precision as scripts write it: it is off here, and code that leaves room for it runs."""

import functools
import warnings

from tinygrad_ext.core.data.dtype import device
from tinygrad_ext.errors import refuse_unknown

__all__ = ["GradScaler", "autocast"]


def _off(what, device_type, enabled):
    """Whether a switch is off; one for a device that is not here goes off with a warning, as in PyTorch."""
    if enabled and device_type != "cpu":
        warnings.warn(
            f"{what}: device_type of '{device_type}' was given, but {device_type.upper()} is not available. Disabling",
            UserWarning,
            stacklevel=3,
        )
        return True
    return not enabled


class autocast:
    """Context manager and decorator: computes in lower precision; here it can only be off.

    Args:
        device_type: "cpu", or a device that is not here, for which it is off with a warning.
        enabled: False does nothing.

    Raises NotImplementedError for the cpu with `enabled`: no op is cast. Convert the model with ``model.to(dtype)``.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device(device_type).type
        if not _off("autocast()", self.device, enabled):
            raise NotImplementedError(
                "autocast(): ops are not cast on the cpu here. Pass enabled=False, or convert model and inputs with "
                ".to(bfloat16)."
            )

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def __call__(self, function):
        return functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))


class GradScaler:
    """Scales losses against underflow in float16; here it can only be off, and every method is the plain step.

    Raises NotImplementedError for the cpu with `enabled`: nothing computes in float16 that would need it.
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
        if not _off("GradScaler()", str(device), enabled):
            raise NotImplementedError("GradScaler(): losses are not scaled on the cpu. Pass enabled=False.")

    def is_enabled(self):
        """False."""
        return False

    def scale(self, outputs):
        """The outputs as they are."""
        return outputs

    def unscale_(self, optimizer):
        """Do nothing."""

    def step(self, optimizer, *args, **kwargs):
        """``optimizer.step(*args, **kwargs)``."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        """Do nothing."""

    def get_scale(self):
        """1.0."""
        return 1.0

    def state_dict(self):
        """An empty dict."""
        return {}

    def load_state_dict(self, state_dict):
        """Do nothing."""


__getattr__ = refuse_unknown(__name__)
