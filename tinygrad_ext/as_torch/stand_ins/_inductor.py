"""torch._inductor: there is no compiler of bytecode; its settings can be set."""

from . import _inductor_config as config

__all__ = ["config"]
