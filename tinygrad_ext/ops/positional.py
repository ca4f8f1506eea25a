"""Functions at the top as PyTorch's own layers call them: every argument by place, a reduction as 0, 1 or 2."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

_ALL = "bool int float half complex"
_WORDS = ("none", "mean", "sum")
_CODES = (0, 1, 2)


def _word(code, title):
    """The word of a reduction's number."""
    if not 0 <= code <= 2:
        raise RuntimeError(f"{title}(): reduction is 0 (none), 1 (mean) or 2 (sum), got {code}")
    return _WORDS[code]


def _np():
    import numpy

    return numpy


def _np_reduced(loss, code):
    return loss if code == 0 else loss.mean() if code == 1 else loss.sum()


# ---- losses --------------------------------------------------------------------------------------------------------


def _kl_div(self, target, reduction, log_target):
    loss = functions["nn.functional.kl_div"](self, target, reduction="none", log_target=log_target)
    word = _word(reduction, "kl_div")
    return loss if word == "none" else loss.mean() if word == "mean" else loss.sum()


op(
    "aten::kl_div.reduced(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor",
    compose=_kl_div,
    variants="function",
    types="float",
    samples=lambda make: [
        *(Sample(make(3, 4), make(3, 4, low=0.1, high=1), k) for k in _CODES),
        Sample(make(3, 4), make(3, 4), log_target=True),
    ],
    reference=lambda x, y, reduction=0, log_target=False: _np_reduced(
        _np().exp(y) * (y - x) if log_target else y * (_np().log(y) - x), reduction
    ),
    errors=[(lambda: tg.kl_div(zeros(2), zeros(2), 3), RuntimeError, "reduction is 0 (none), 1 (mean) or 2 (sum)")],
    doc="nn.functional.kl_div with reduction as a number: 0 none, 1 mean, 2 sum.",
)

op(
    "aten::binary_cross_entropy_with_logits.reduced(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
    "pos_weight=None, int reduction=0) -> Tensor",
    compose=lambda self, target, weight, pos_weight, reduction: functions[
        "nn.functional.binary_cross_entropy_with_logits"
    ](self, target, weight, None, None, _word(reduction, "binary_cross_entropy_with_logits"), pos_weight),
    variants="function",
    types="float",
    samples=lambda make: [Sample(make(3, 4), make(3, 4, low=0, high=1), reduction=k) for k in _CODES],
    reference=lambda x, y, reduction=0: _np_reduced((1 - y) * x + _np().logaddexp(0, -x), reduction),
    doc="nn.functional.binary_cross_entropy_with_logits with reduction as a number: 0 none, 1 mean, 2 sum.",
)

op(
    "aten::poisson_nll_loss.reduced(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) "
    "-> Tensor",
    compose=lambda input, target, log_input, full, eps, reduction: functions["nn.functional.poisson_nll_loss"](
        input, target, log_input, full, None, eps, None, _word(reduction, "poisson_nll_loss")
    ),
    variants="function",
    types="float",
    samples=lambda make: [Sample(make(3, 4), make(3, 4, low=0.5, high=4), True, False, 1e-8, k) for k in _CODES],
    reference=lambda x, y, log_input, full, eps, reduction: _np_reduced(_np().exp(x) - y * x, reduction),
    doc="nn.functional.poisson_nll_loss with all arguments, reduction as a number: 0 none, 1 mean, 2 sum.",
)

# ---- normalizations ------------------------------------------------------------------------------------------------


def _layer_moments(input, n, eps):
    dims = tuple(range(input.dim() - n, input.dim()))
    variance, mean = tg.var_mean(input, dims, correction=0, keepdim=True)
    return mean, (variance + eps).rsqrt()


def _np_moments(x, axes, eps=1e-5):
    return x.mean(axes, keepdims=True), 1 / _np().sqrt(x.var(axes, keepdims=True) + eps)


def _np_layer(x, shape, weight, bias, eps):
    mean, rstd = _np_moments(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    y = (x - mean) * rstd
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), mean, rstd


op(
    "aten::native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor out, Tensor mean, Tensor rstd)",
    compose=lambda input, normalized_shape, weight, bias, eps: (
        tg.layer_norm(input, normalized_shape, weight, bias, eps),
        *_layer_moments(input.detach(), len(normalized_shape), eps),
    ),
    variants="function",
    types="float",
    samples=lambda make: [
        Sample(make(3, 4), (4,), make(4), make(4), 1e-5),
        Sample(make(2, 3, 4), (3, 4), None, None, 0.1),
    ],
    reference=_np_layer,
    doc="layer_norm, and the mean and 1 / sqrt(variance + eps) of each part, in dimensions of size 1, which "
    "carry no gradient.",
)


@rounded_once
def _group(input, weight, bias, N, C, HxW, group, eps):
    if N * C * HxW != input.numel():
        raise RuntimeError(
            f"native_group_norm(): expected input of {N} x {C} x {HxW} elements, got {list(input.shape)}: give N, C "
            "and the product of the other sizes"
        )
    if group <= 0 or C % group:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got {C} channels and "
            f"num_groups={group}"
        )
    mean, rstd = _layer_moments(input.reshape(N, group, C // group * HxW), 1, eps)
    return tg.group_norm(input, group, weight, bias, eps), mean.squeeze(2), rstd.squeeze(2)


def _np_group(x, weight, bias, n, c, space, group, eps):
    mean, rstd = _np_moments(x.reshape(n, group, -1), 2, eps)
    y = ((x.reshape(n, group, -1) - mean) * rstd).reshape(n, c, space)
    y = y if weight is None else y * weight.reshape(1, -1, 1)
    y = y if bias is None else y + bias.reshape(1, -1, 1)
    return y.reshape(x.shape), mean[..., 0], rstd[..., 0]


op(
    "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) "
    "-> (Tensor out, Tensor mean, Tensor rstd)",
    compose=_group,
    variants="function",
    types="float",
    samples=lambda make: [
        Sample(make(2, 6, 3), make(6), make(6), 2, 6, 3, 3, 1e-5),
        Sample(make(2, 4, 2, 2), None, None, 2, 4, 4, 2, 0.1),
    ],
    reference=_np_group,
    errors=[
        (
            lambda: tg.native_group_norm(zeros(2, 4, 3), None, None, 2, 4, 1, 2, 0.1),
            RuntimeError,
            "expected input of 2",
        ),
        (lambda: tg.native_group_norm(zeros(2, 4, 3), None, None, 2, 4, 3, 0, 0.1), RuntimeError, "divisible by"),
    ],
    doc="group_norm, and the mean and 1 / sqrt(variance + eps) of each example's groups.",
)

op(
    "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
    "use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    compose=lambda input, weight, bias, mean, var, use, momentum, eps, cudnn: functions["nn.functional.instance_norm"](
        input, mean, var, weight, bias, use, momentum, eps
    ),
    variants="function",
    types="float",
    samples=lambda make: [
        Sample(make(2, 3, 4), make(3), make(3), None, None, True, 0.1, 1e-5, False),
        Sample(make(2, 3, 4), None, None, None, None, True, 0.1, 0.1, False),
    ],
    reference=lambda x, w, b, mean, var, use, momentum, eps, cudnn: _np_group(
        x, w, b, *x.shape[:2], x[0, 0].size, x.shape[1], eps
    )[0],
    doc="nn.functional.instance_norm with all arguments by place.",
)

# ---- sampling and channels -----------------------------------------------------------------------------------------

_MODES, _BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    if not (0 <= interpolation_mode < 3 and 0 <= padding_mode < 3):
        raise RuntimeError(
            "grid_sampler(): interpolation_mode is 0 (bilinear), 1 (nearest) or 2 (bicubic), padding_mode 0 (zeros), "
            f"1 (border) or 2 (reflection), got {interpolation_mode} and {padding_mode}"
        )
    return functions["nn.functional.grid_sample"](
        input, grid, _MODES[interpolation_mode], _BORDERS[padding_mode], align_corners
    )


def _np_sampler(x, grid, mode, padding, align_corners):
    """Zeros outside, or the nearest border, by SciPy's splines of order 1 and 0."""
    from scipy import ndimage

    np, sizes = _np(), x.shape[2:]
    at = [((grid[..., k] + 1) * n - 1) / 2 for k, n in enumerate(sizes[::-1])][::-1]
    if padding == 1:
        at = [p.clip(0, n - 1) for p, n in zip(at, sizes, strict=True)]
    found = np.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for i, j in np.ndindex(*x.shape[:2]):
        places = [p[i] for p in at]
        found[i, j] = ndimage.map_coordinates(x[i, j], places, order=1 - mode, mode="grid-constant")
    return found


for _name, _ranks in (("grid_sampler", (2, 3)), ("grid_sampler_2d", (2,)), ("grid_sampler_3d", (3,))):
    op(
        f"aten::{_name}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
        "Tensor",
        compose=_sampler,
        types="float",
        variants="function",
        domain=((-2, 2), (-0.9, 0.9)),
        samples=lambda make, ranks=_ranks: [
            Sample(make(2, 2, *(3,) * n), make(2, *(2,) * n, n), mode, mode, False) for n in ranks for mode in (0, 1)
        ],
        reference=_np_sampler,
        errors=[
            (
                lambda name=_name: getattr(tg, name)(zeros(1, 1, 2, 2), zeros(1, 2, 2, 2), 3, 0, False),
                RuntimeError,
                "interpolation_mode is 0",
            )
        ],
        doc="nn.functional.grid_sample with modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 "
        "reflection.",
    )

op(
    "aten::native_channel_shuffle(Tensor self, int groups) -> Tensor",
    compose=lambda self, groups: tg.channel_shuffle(self, groups),
    variants="function",
    where=". nn.functional",
    types=_ALL,
    samples=lambda make: [Sample(make(1, 4, 2, 2), 2)],
    reference=lambda x, groups: x.reshape(x.shape[0], groups, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape),
    doc="channel_shuffle under the name of its kernel in PyTorch.",
)


def _norm_except_dim(v, pow, dim):
    if dim == -1:
        return v.norm(pow)
    if not 0 <= dim < v.dim():
        raise IndexError(f"norm_except_dim(): expected dim from -1 to {v.dim() - 1}, got {dim}")
    rest = [d for d in range(v.dim()) if d != dim]
    return tg.linalg.vector_norm(v, pow, rest, True) if rest else v.abs()


op(
    "aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    compose=_norm_except_dim,
    variants="function",
    types="float",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(2, 3, 2), 2, 1), Sample(make(2, 3), 1, -1)],
    reference=lambda v, pow=2, dim=0: (
        ((abs(v) ** pow).sum(tuple(d for d in range(v.ndim) if d != dim) if dim >= 0 else None, keepdims=dim >= 0))
        ** (1 / pow)
    ),
    errors=[(lambda: tg.norm_except_dim(zeros(2, 2), 2, 2), IndexError, "expected dim from -1 to 1")],
    doc="Norm over all dimensions but dim, which stay with size 1; over all of them for -1. weight_norm is made of it.",
)
