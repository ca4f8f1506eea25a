"""The older place of `amp.autocast` and `amp.GradScaler`, whose device is cuda."""

from tinygrad_ext import amp

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`amp.autocast("cuda", ...)`: without a GPU it is off."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cuda", ...)`: without a GPU it is off."""

    def __init__(self, *args, **kwargs):
        super().__init__("cuda", *args, **kwargs)
