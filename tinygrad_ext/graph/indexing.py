"""Indexing while a program is captured: brackets become the ops that they mean, so sizes in them stay values.

Ints, slices, None and Ellipsis become select, slice and unsqueeze; tensors, lists and masks `index`. Writing goes to
the window that the basic parts are, by `copy_`, `fill_` or `index_put`.
"""

from tinygrad_ext.core.data.tensor import Tensor

from .symbols import Symbol


def getitem(capture, tensor, index):
    window, indices = _split(capture, tensor, index)
    if not indices:
        return capture.call("aten::_alias", tensor, Ellipsis) if window is tensor else window
    return capture.call("aten::index.Tensor", window, indices)


def setitem(capture, tensor, index, value):
    window, indices = _split(capture, tensor, index)
    if indices:
        if not isinstance(value, Tensor):
            value = capture.call("aten::full", (), value, tensor.dtype, None, tensor.device, None, False)
        new = capture.call("aten::index_put", window, indices, value.to(tensor.dtype), False)
        capture.assign(window, new, _Assignment)
    elif isinstance(value, Tensor) and capture.same_window(value, window):
        pass  # `x[i] += 1` has written it already
    elif isinstance(value, Tensor):
        while value.dim() > window.dim() and value.shape[0] == 1:
            value = value[0]
        window.copy_(value)
    else:
        window.fill_(value)


class _Assignment:
    name, kind = "aten::__setitem__", "inplace"


RULES = {"aten::__getitem__": getitem, "aten::__setitem__": setitem}


def _split(capture, tensor, index):
    """The window that the basic parts of an index show, and the indices for its dimensions that are tensors."""
    parts = _parts(index)
    consumed = sum(_consumed(p) for p in parts)
    if consumed > tensor.dim():
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    window, dim, indices = tensor, 0, []
    for part in parts:
        if part is Ellipsis:
            dim += tensor.dim() - consumed
            indices += [None] * (dim - len(indices))
        elif part is None:
            window = capture.call("aten::unsqueeze", window, dim)
            dim, indices = dim + 1, [*indices, None]
        elif isinstance(part, slice):
            if part != slice(None):
                window = _sliced(capture, window, dim, part)
            dim, indices = dim + 1, [*indices, None]
        elif _is_number(part):
            window = capture.call("aten::select.int", window, dim, part)
        elif isinstance(part, bool):
            window = capture.call("aten::unsqueeze", window, dim)
            dim, indices = dim + 1, [*indices, _tensor([part])]
        else:
            found = _tensor(part)
            indices += [found]
            dim += _consumed(part)
    return window, tuple(indices) if any(i is not None for i in indices) else ()


def _sliced(capture, window, dim, part):
    step = 1 if part.step is None else part.step
    if step <= 0:
        raise ValueError("step must be greater than zero")
    return capture.call("aten::slice.Tensor", window, dim, part.start, part.stop, step)


def _parts(index):
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and any(
        p is None or p is Ellipsis or isinstance(p, (slice, Tensor, list)) for p in index
    ):
        return tuple(index)
    return (index,)


def _is_number(part):
    if isinstance(part, bool):
        return False
    if isinstance(part, Tensor):
        return part.dim() == 0 and not (part.dtype.is_floating_point or str(part.dtype).endswith(("bool", "uint8")))
    return type(part) is Symbol or (hasattr(part, "__index__") and not hasattr(part, "shape"))


def _consumed(part):
    """Dimensions of the tensor that a part stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and str(part.dtype).endswith(("bool", "uint8")):
        return part.dim()
    return 1


def _tensor(part):
    from tinygrad_ext.core.call.op_tables import functions  # lazy: the table is filled after import

    return part if isinstance(part, Tensor) else functions["tensor"](part)
