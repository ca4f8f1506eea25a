"""Engines of products of quantized numbers, of which none is here."""

import sys
import types

_KNOWN = ("none", "fbgemm", "qnnpack", "onednn", "x86")


class _Engines(types.ModuleType):
    """The module, whose engine is looked at when it is set."""

    @property
    def supported_engines(self):
        """["none"]: what can be set."""
        return ["none"]

    @property
    def engine(self):
        """ "none"."""
        return "none"

    @engine.setter
    def engine(self, value):
        if value not in _KNOWN:
            raise RuntimeError(f"{value} is not a valid value for quantized engine: it is one of {', '.join(_KNOWN)}")
        if value != "none":
            raise RuntimeError(
                f"quantized engine {value.upper()} is not supported: there are no quantized tensors here"
            )


sys.modules[__name__].__class__ = _Engines
