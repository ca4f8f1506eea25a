"""How the derivatives of views go through vmap: the batch is one more dimension in front of all sizes."""

from tinygrad_ext.ops.batching import after, widened
from tinygrad_ext.ops.batching_index import told


@told("_select_backward")
def select_backward(b, grad_output, input_sizes, dim, index):
    grad = widened(b.whole(grad_output), len(input_sizes) - 1)
    return grad._select_backward((b.size, *input_sizes), after(dim, len(input_sizes)), index)


@told("_slice_backward")
def slice_backward(b, grad_output, input_sizes, dim, start, step):
    return b.whole(grad_output)._slice_backward((b.size, *input_sizes), after(dim, len(input_sizes)), start, step)


@told("_diagonal_backward")
def diagonal_backward(b, grad_output, input_sizes, offset, dim1, dim2):
    rank = len(input_sizes)
    grad = widened(b.whole(grad_output), rank - 1)
    return grad._diagonal_backward((b.size, *input_sizes), offset, after(dim1, rank), after(dim2, rank))


@told("_unfold_backward")
def unfold_backward(b, grad_in, input_sizes, dim, size, step):
    if not input_sizes:  # one window of one element, or of none
        return widened(b.whole(grad_in), 1).unsqueeze(1)._unfold_backward((b.size, 1), 1, size, step).squeeze(1)
    at = after(dim, len(input_sizes))
    return widened(b.whole(grad_in), len(input_sizes) + 1)._unfold_backward((b.size, *input_sizes), at, size, step)


@told("_rewindow")
def rewindow(b, self, stride, offset, into_size, into_stride, into_offset, by_source):
    """Every sample's windows lie in memory of its own, one behind the other."""
    low = min(offset, into_offset)
    ends = _reach(self.shape, stride) + offset - low, _reach(into_size, into_stride) + into_offset - low
    step = max(ends)
    into = (b.size, *into_size), (step, *into_stride), into_offset
    return b.whole(self)._rewindow((step, *stride), offset, *into, by_source)


@told("_window_scatter")
def window_scatter(b, self, src, size, stride, offset):
    whole = b.whole(self)
    room = whole.shape[-1]
    if 0 not in size and _reach(size, stride) + offset > room:
        raise RuntimeError("beyond the memory of a sample")
    window = (b.size, *size), (room, *stride), offset
    return whole.reshape(-1)._window_scatter(b.whole(src), *window).reshape(whole.shape)


def _reach(sizes, strides):
    """Elements from the first one of a window to behind the last."""
    return 0 if 0 in sizes else 1 + sum((size - 1) * step for size, step in zip(sizes, strides))
