"""torch._prims.context: the mode in which functions are what torch._refs has, which are the functions themselves."""

import contextlib

from tinygrad_ext.overrides import TorchFunctionMode


class TorchRefsMode(TorchFunctionMode):
    """Calls each function as it is, inside of another mode where one is given."""

    def __init__(self, strict=False, should_fallback_fn=None, prims_mode_cls=contextlib.nullcontext):
        self.strict, self.should_fallback_fn, self.prims_mode_cls = strict, should_fallback_fn, prims_mode_cls

    def __torch_function__(self, orig_func, types, args=(), kwargs=None):
        with self.prims_mode_cls():
            return orig_func(*args, **(kwargs or {}))
