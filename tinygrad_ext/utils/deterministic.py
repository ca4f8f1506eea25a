"""What goes with `use_deterministic_algorithms`."""

import sys
import types

from tinygrad_ext.tensor import unset as _unset


class _Settings(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        """Whether elements that are not set are filled while algorithms are to be deterministic; True at the start.

        `empty` and its kin and `resize_` then give nan, the largest integer, or True.
        """
        return _unset.told("fill")

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory: expected a bool, but got {type(mode).__name__}")
        _unset.tell("fill", mode)


sys.modules[__name__].__class__ = _Settings
