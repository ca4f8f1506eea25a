"""The same values in other memory layouts.

Each function takes a tensor and gives one with the layout it names, or None where the shape does not allow it.
`expanded` repeats the first slice, so its values differ; every check therefore compares an op on the laid-out
tensor with the op on that tensor's contiguous copy.
"""

import tinygrad_ext as tg


def contiguous(t):
    """As it is."""
    return t


def transposed(t):
    """Dimensions in reverse order in memory."""
    return t.transpose(0, -1).clone(memory_format=_row_major()).transpose(0, -1) if t.dim() > 1 else None


def stepped(t):
    """Every second element of a longer tensor."""
    if t.dim() == 0:
        return None
    room = t.new_zeros((*t.shape[:-1], 2 * t.shape[-1]))
    window = room[..., ::2]
    window.copy_(t)
    return window


def expanded(t):
    """The first slice, repeated with stride 0."""
    if t.dim() == 0 or t.shape[0] == 0:
        return None
    return t.narrow(0, 0, 1).expand(t.shape)


def offset(t):
    """Behind another element in the same storage."""
    room = t.new_zeros((t.numel() + 1,))
    window = room[1:].view(t.shape)
    window.copy_(t)
    return window


def channels_moved(t):
    """The second dimension innermost in memory, as channels_last is."""
    if t.dim() < 3:
        return None
    return t.movedim(1, -1).clone(memory_format=_row_major()).movedim(-1, 1)


def zero_dim(t):
    """One element as a 0-d tensor."""
    return t.reshape(-1)[0].clone() if t.numel() else None


def empty(t):
    """No elements, one dimension."""
    return t.reshape(-1)[:0].clone()


def _row_major():
    return tg.contiguous_format


KEEP_SHAPE = {
    "transposed": transposed,
    "stepped": stepped,
    "expanded": expanded,
    "offset": offset,
    "channels_moved": channels_moved,
}
CHANGE_SHAPE = {"zero_dim": zero_dim, "empty": empty}


def map_tensors(values, fn):
    """args with fn applied to each tensor, one level of lists and dicts included."""
    if isinstance(values, dict):
        return {k: _map(v, fn) for k, v in values.items()}
    return tuple(_map(v, fn) for v in values)


def _map(v, fn):
    if isinstance(v, tg.Tensor):
        return fn(v)
    if isinstance(v, (list, tuple)) and any(isinstance(x, tg.Tensor) for x in v):
        return type(v)([_map(x, fn) for x in v])
    if isinstance(v, dict):
        return {k: _map(x, fn) for k, x in v.items()}
    return v


def laid_out(sample, layout):
    """(args, kwargs) of a sample in a layout; None when no tensor of it can take the layout."""
    changed = []

    def change(t):
        got = layout(t.detach())
        if got is None:
            return t
        changed.append(got)
        return got.requires_grad_() if isinstance(t, tg.Tensor) and t.requires_grad else got

    args, kwargs = map_tensors(sample.args, change), map_tensors(sample.kwargs, change)
    return (args, kwargs) if changed else None


def growth(sample, elements):
    """By what to multiply sizes so that a sample's largest tensor has about `elements`; 1 for what cannot grow."""
    tensors = [v for v in [*sample.args, *sample.kwargs.values()] if isinstance(v, tg.Tensor) and v.numel() > 1]
    if not tensors:
        return 1
    largest = max(tensors, key=lambda t: t.numel())
    growing = sum(s > 1 for s in largest.shape)
    return max(1, int((elements / largest.numel()) ** (1 / growing)))


def enlarge(t, factor):
    """A tensor of the same kind of values, each size but 0 and 1 multiplied."""
    if factor == 1:
        return t
    import numpy as np

    shape = [s * factor if s > 1 else s for s in t.shape]
    return tg.tensor(np.resize(np.array(t.tolist()), shape), dtype=t.dtype)
