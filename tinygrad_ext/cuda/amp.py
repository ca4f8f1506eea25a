"""The older place of `amp.autocast`, `amp.GradScaler` and the decorators of Functions, whose device is cuda."""

from tinygrad_ext import amp

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`amp.autocast("cuda", ...)`: without a GPU it is off."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cuda", ...)`: without a GPU it is off."""

    def __init__(self, *args, **kwargs):
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`amp.custom_fwd(..., device_type="cuda")`: tensors on the cpu stay as they are."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """`amp.custom_bwd(..., device_type="cuda")`."""
    return amp.custom_bwd(bwd, device_type="cuda")


def amp_definitely_not_available():
    """True: there is no GPU."""
    return True
