"""The name under which PyTorch's first notes import `overrides`; both names are one module."""

import sys

from tinygrad_ext import overrides

sys.modules[__name__] = overrides
