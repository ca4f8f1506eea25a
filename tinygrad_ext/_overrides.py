"""The name that `overrides` had in PyTorch's first notes: `from tinygrad_ext._overrides import ...`."""

import sys

from tinygrad_ext import overrides

sys.modules[__name__] = overrides
