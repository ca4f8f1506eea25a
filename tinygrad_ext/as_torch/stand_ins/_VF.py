"""torch._VF: the ops as functions."""

import tinygrad_ext as _tg


def __getattr__(name):
    return getattr(_tg, name)
