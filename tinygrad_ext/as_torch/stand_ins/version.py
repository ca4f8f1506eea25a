"""torch.version: which PyTorch is followed, and that there is no device."""

import tinygrad_ext as _tg

__version__ = _tg.__version__
cuda = hip = rocm = xpu = git_version = None
debug = False
