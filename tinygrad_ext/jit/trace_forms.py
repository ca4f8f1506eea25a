"""How PyTorch's own op of a call is called, where this package has it under the arguments of `nn.functional`."""

import math


def _row(n, x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,) * n


def _convolution(n):
    def form(x, weight, bias, stride, padding, dilation, groups):
        if isinstance(padding, str):
            stride, dilation = _row(n, stride), _row(n, dilation)
            return "aten::_convolution_mode", (x, weight, bias, stride, padding, dilation, groups)
        return _whole(n, x, weight, bias, stride, padding, dilation, False, 0, groups)

    return form


def _transposed(n):
    def form(x, weight, bias, stride, padding, output_padding, groups, dilation):
        return _whole(n, x, weight, bias, stride, padding, dilation, True, output_padding, groups)

    return form


def _whole(n, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    rows = [_row(n, r) for r in (stride, padding, dilation)]
    return "aten::_convolution", (
        x, weight, bias, *rows, transposed, _row(n, output_padding), groups, False, False, True, True,
    )  # fmt: skip


def _with_statistics(kind):
    def form(x, mean, var, weight, bias, training, momentum, eps):
        return kind, (x, weight, bias, mean, var, training, momentum, eps, True)

    return form


def _interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    n = x.dim() - 2
    if mode == "area":
        size = size if size is not None else [math.floor(a * b) for a, b in zip(x.shape[2:], _row(n, scale_factor))]
        return f"aten::adaptive_avg_pool{n}d", (x, _row(n, size))
    size, scales = (None if r is None else _row(n, r) for r in (size, scale_factor))
    aligned = () if "nearest" in mode else (bool(align_corners),)
    name = ("_upsample_nearest_exact" if mode == "nearest-exact" else f"upsample_{mode}") + f"{n}d"
    return f"aten::_{name}_aa" if antialias else f"aten::{name}", (x, size, *aligned, scales)


def _grid_sample(x, grid, mode, padding_mode, align_corners):
    words = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return "aten::grid_sampler", (
        x, grid, words[0].index(mode), words[1].index(padding_mode), bool(align_corners)
    )  # fmt: skip


# op -> function(arguments) giving (kind, arguments)
FORMS = {
    **{f"aten::conv{n}d{how}": _convolution(n) for n in (1, 2, 3) for how in ("", ".padding")},
    **{f"aten::conv_transpose{n}d": _transposed(n) for n in (1, 2, 3)},
    "aten::batch_norm.functional": _with_statistics("aten::batch_norm"),
    "aten::instance_norm.functional": _with_statistics("aten::instance_norm"),
    "aten::layer_norm.functional": lambda *args: ("aten::layer_norm", (*args, True)),
    "aten::group_norm.functional": lambda *args: ("aten::group_norm", (*args, True)),
    "aten::embedding.functional": lambda index, weight, padding_idx, max_norm, norm_type, by_frequency, sparse: (
        "aten::embedding", (weight, index, -1 if padding_idx is None else padding_idx, by_frequency, sparse)
    ),
    "aten::softmax.functional": lambda x, dim, stacklevel, dtype: ("aten::softmax", (x, dim, dtype)),
    "aten::log_softmax.functional": lambda x, dim, stacklevel, dtype: ("aten::log_softmax", (x, dim, dtype)),
    "aten::dropout.functional": lambda x, p, training, inplace: (
        "aten::dropout_" if inplace else "aten::dropout", (x, p, training)
    ),
    "aten::interpolate": _interpolate,
    "aten::grid_sample": _grid_sample,
}  # fmt: skip
# composites that PyTorch has no op of: what they consist of is told
OPENED = frozenset(["aten::__getitem__", "aten::multi_head_attention_forward"])
# what is a view by an index, told as one view of one dimension after the other
INDEXED = frozenset(["aten::_select", "aten::_slice", "aten::_unsqueeze", "aten::_alias"])
