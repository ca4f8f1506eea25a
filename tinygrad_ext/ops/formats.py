"""The memory format that results of composites have."""

import tinygrad_ext as tg


def kept_format(*tensors):
    """channels_last for images and channels_last_3d for volumes where one of the tensors lies so, else row-major."""
    for t in tensors:
        if t.dim() in (4, 5) and not t.is_contiguous():
            inside = tg.channels_last if t.dim() == 4 else tg.channels_last_3d
            if t.is_contiguous(memory_format=inside):
                return inside
    return tg.contiguous_format
