"""How layers go through vmap: convolution, pooling, normalization, embedding, and their derivatives.

Each is carried out once, with the batch folded into a dimension that the op treats alike: the rows of its input, its
channels, or its groups. b is the level, as in batching.py.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.batching import after, told, unfit
from tinygrad_ext.ops.fused import fused


def rows_folded(whole):
    """(batch, N, ...) as (batch * N, ...)."""
    return whole.reshape((whole.shape[0] * whole.shape[1], *whole.shape[2:]))


def channels_folded(whole):
    """(batch, N, C, ...) as (N, batch * C, ...)."""
    batch, n, c = whole.shape[:3]
    return whole.transpose(0, 1).reshape((n, batch * c, *whole.shape[3:]))


def channels_unfolded(tensor, batch, channels):
    """(N, batch * C, ...) as (batch, N, C, ...)."""
    return tensor.reshape((tensor.shape[0], batch, channels, *tensor.shape[2:])).transpose(0, 1)


@told("channel_shuffle")
def channel_shuffle(b, self, groups):
    if self.dim() < 3:
        raise unfit("channel_shuffle")
    return tg.channel_shuffle(rows_folded(b.whole(self)), groups).unflatten(0, (b.size, self.shape[0]))


# ---- convolution ---------------------------------------------------------------------------------------------------


def _of_samples(b, weight):
    """The weights of all samples, one below the other."""
    return rows_folded(b.whole(weight))


def _folded(b, run, x, weight, groups, size=None):
    """run(x, weight, groups, size) for all samples, size being that of what the other side of the window has."""
    single = x.dim() < weight.dim()
    if not b.size or not b.owns(weight):
        shared = weight if b.size else b.whole(weight).new_zeros(weight.shape)  # (of no samples any will do)
        y = run(b.whole(x) if single else rows_folded(b.whole(x)), shared, groups, size)
        return y if single else y.unflatten(0, (b.size, x.shape[0]))
    if size is None and not b.owns(x):
        # one input for all: the samples are more channels of what comes out, in each of the groups
        parts = b.whole(weight).unflatten(1, (groups, weight.shape[0] // groups)).transpose(0, 1)
        y = run(x.unsqueeze(0) if single else x, parts.flatten(0, 2), groups, None)
        y = y.unflatten(1, (groups, b.size, -1)).movedim(2, 0).flatten(2, 3)
    else:
        whole = b.whole(x).unsqueeze(1) if single else b.whole(x)
        y = run(channels_folded(whole), _of_samples(b, weight), groups * b.size, size)
        y = channels_unfolded(y, b.size, y.shape[1] // b.size)
    return y.squeeze(1) if single else y


def convolution(name, overload=""):
    """conv1d, conv2d and conv3d, with padding by numbers or by name."""

    @told(name + overload)
    def rule(b, input, weight, bias, stride, padding, dilation, groups):
        convolve = getattr(tg, name)
        plain = not b.owns(weight) and not b.owns(bias)
        if not weight.dim() - 2 < input.dim() < weight.dim() + 1 or weight.shape[0] % max(groups, 1):
            raise unfit(name)
        if bias is not None and (bias.shape != weight.shape[:1] or bias.dtype != input.dtype):
            raise unfit(name)

        def run(x, weight, groups, _):
            return convolve(x, weight, bias if plain else None, stride, padding, dilation, groups)

        if not b.owns(input) and not b.owns(weight):
            y = run(input, weight, groups, None)
            y = y.expand((b.size, *y.shape))
        else:
            y = _folded(b, run, input, weight, groups)
        if plain or bias is None:
            return y
        spread = (1,) * (weight.dim() - 2)
        shape = (bias.shape[0], *spread) if input.dim() < weight.dim() else (1, bias.shape[0], *spread)
        return y + (b.whole(bias).reshape((b.size, *shape)) if b.owns(bias) else bias.reshape(shape))

    return rule


def conv_window(b, self, weight, stride, padding, dilation, groups, size):
    def run(x, weight, groups, _):
        return x._conv_window(weight, stride, padding, dilation, groups, size)

    return _folded(b, run, self, weight, groups)


def conv_input_grad(b, self, weight, input_size, stride, padding, dilation, groups):
    single = self.dim() < weight.dim()

    def run(grad, weight, groups, size):
        first = () if single and grad.dim() < weight.dim() else grad.shape[:1]
        channels = groups * weight.shape[1]
        return grad._conv_input_grad(weight, (*first, channels, *size), stride, padding, dilation, groups)

    return _folded(b, run, self, weight, groups, input_size[2 - weight.dim() :])


def conv_weight_grad(b, self, input, weight_size, stride, padding, dilation, groups):
    grad, x = b.whole(self), b.whole(input)
    if not b.size:
        return grad.new_zeros((0, *weight_size))
    if self.dim() < len(weight_size):
        grad, x = grad.unsqueeze(1), x.unsqueeze(1)
    size = (b.size * weight_size[0], *weight_size[1:])
    found = channels_folded(grad)._conv_weight_grad(
        channels_folded(x), size, stride, padding, dilation, groups * b.size
    )
    return found.unflatten(0, (b.size, weight_size[0]))


# ---- pooling -------------------------------------------------------------------------------------------------------


def _planes(b, x, dims):
    """All planes of all samples, as images of one channel."""
    whole = b.whole(x)
    count = 1
    for s in whole.shape[:-dims]:
        count *= s
    return whole.reshape((count, 1, *whole.shape[-dims:]))


def _unplaned(b, like, result, dims):
    """A result, or several, for the planes of `like`, each where its plane was."""
    if isinstance(result, tuple):
        return tuple.__new__(type(result), [_unplaned(b, like, r, dims) for r in result])
    return result.reshape((b.size, *like.shape[: like.dim() - dims], *result.shape[-dims:]))


def pool(name, dims):
    """Pooling of the last `dims` dimensions."""

    @told(name)
    def rule(b, self, *rest):
        run = getattr(fused, name)
        if not dims < self.dim() < dims + 3:
            raise unfit(name)
        if 0 in self.shape[-dims - 1 :]:  # nothing is computed but shapes, and some are refused
            if b.size:
                return _stacked([run(x, *rest) for x in b.whole(self)])
            run(b.whole(self).new_zeros(self.shape), *rest)
        return _unplaned(b, self, run(_planes(b, self, dims), *rest), dims)

    return rule


def pool_gradient(name):
    """A pooling's derivative by its input, whose last argument says how many dimensions it has."""

    def rule(b, self, *rest):
        dims = rest[-1]
        planes = _planes(b, self, dims)
        rest = [_planes(b, a, dims) if isinstance(a, tg.Tensor) else a for a in rest]
        if name != "_max_pool_gather":
            at = 1 if name == "_max_pool_backward" else 0
            rest[at] = (planes.shape[0], 1, *rest[at][-dims:])
        return _unplaned(b, self, getattr(planes, name)(*rest), dims)

    return rule


def _stacked(results):
    if isinstance(results[0], tuple):
        return tuple.__new__(type(results[0]), map(tg.stack, zip(*results)))
    return tg.stack(results)


# ---- normalization -------------------------------------------------------------------------------------------------


def _scaled(b, y, rank, weight, bias):
    """y times weight plus bias, which stand behind what all samples have in front."""
    for factor, put in ((weight, tg.mul), (bias, tg.add)):
        if factor is not None:
            between = (1,) * (rank - factor.dim())
            y = put(y, b.whole(factor).reshape((b.size, *between, *factor.shape)) if b.owns(factor) else factor)
    return y


def _layer_norm(b, input, normalized_shape, weight, bias, eps, cudnn_enable=True):
    if any(t is not None and (t.shape != tuple(normalized_shape) or t.dtype != input.dtype) for t in (weight, bias)):
        raise unfit("layer_norm")
    if not b.owns(weight) and not b.owns(bias):
        return tg.layer_norm(b.whole(input), normalized_shape, weight, bias, eps)
    return _scaled(b, tg.layer_norm(b.whole(input), normalized_shape, None, None, eps), input.dim(), weight, bias)


layer_norm = told("layer_norm")(_layer_norm)
layer_norm_functional = told("layer_norm.functional")(_layer_norm)


def layer_norm_backward(b, grad_output, self, normalized_shape, weight, eps, output_mask):
    grad, x, rank = b.whole(grad_output), b.whole(self), self.dim()
    outer = list(range(1, rank - len(normalized_shape) + 1))  # of each sample, in front of what is normalized
    found = [None, None, None]
    if output_mask[0]:
        shared = weight is None or not b.owns(weight)
        scaled = grad if shared else _scaled(b, grad, rank, weight, None)
        only = (True, False, False)
        found[0] = fused._layer_norm_backward(scaled, x, normalized_shape, weight if shared else None, eps, only)[0]
    if output_mask[1]:
        product = grad * tg.layer_norm(x, normalized_shape, None, None, eps)
        found[1] = product.sum(outer) if outer else product
    if output_mask[2]:
        found[2] = grad.sum(outer) if outer else grad.clone()
    return tuple(found)


def _channels(b, value):
    """A value for each channel of each sample, one sample after the other; None stays so."""
    return None if value is None else b.whole(value).reshape(-1)


def _running(b, value, training):
    if training and value is not None and not b.owns(value):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched. If you are using modules and do not need eval mode, set "
            "track_running_stats=False; else give each sample statistics of its own"
        )
    return _channels(b, value)


@told("native_batch_norm")
def batch_norm(b, input, weight, bias, running_mean, running_var, training, momentum, eps):
    mean, var = _running(b, running_mean, training), _running(b, running_var, training)
    if any(t is not None and t.shape != input.shape[1:2] for t in (weight, bias, running_mean, running_var)):
        raise unfit("batch_norm")
    x = channels_folded(b.whole(input))
    out, save_mean, save_invstd = fused.native_batch_norm(
        x, _channels(b, weight), _channels(b, bias), mean, var, training, momentum, eps
    )
    if training:
        for statistics, new in ((running_mean, mean), (running_var, var)):
            if statistics is not None:
                b.whole(statistics).copy_(new.reshape(b.whole(statistics).shape))
    each = (b.size, input.shape[1])
    return channels_unfolded(out, b.size, input.shape[1]), save_mean.reshape(each), save_invstd.reshape(each)


def batch_norm_backward(b, grad_output, self, weight, mean, invstd, training, eps, output_mask):
    found = fused._batch_norm_backward(
        channels_folded(b.whole(grad_output)),
        channels_folded(b.whole(self)),
        _channels(b, weight),
        _channels(b, mean),
        _channels(b, invstd),
        training,
        eps,
        output_mask,
    )
    each = (b.size, self.shape[1])
    return (
        None if found[0] is None else channels_unfolded(found[0], b.size, self.shape[1]),
        *[None if f is None else f.reshape(each) for f in found[1:]],
    )


def softmax(name):
    """softmax and log_softmax whose dimension may be left to them."""

    def rule(b, self, dim, stacklevel, dtype):
        run = functions[f"nn.functional.{name}"]
        rank = self.dim()
        if dim is None:
            run(tg.zeros((1,) * rank), None, stacklevel)  # which warns
            dim = 0 if rank in (0, 1, 3) else 1
        whole = b.whole(self) if rank else b.whole(self).unsqueeze(1)
        result = run(whole, after(dim, rank), stacklevel, dtype)
        return result if rank else result.squeeze(1)

    return rule


# ---- embedding -----------------------------------------------------------------------------------------------------


def placed(b, index, size):
    """Index numbers of all samples, into `size` places for each, one sample's after the other's.

    One that is out of bounds stays so, for the op to report, instead of naming a place of another sample.
    """
    whole = b.whole(index)
    starts = tg.arange(b.size, dtype=whole.dtype, device=whole.device).reshape((b.size, *(1,) * index.dim())) * size
    return tg.where((whole >= 0) & (whole < size), whole + starts, b.size * size)


@told("embedding")
def embedding(b, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if weight.dim() != 2:
        raise RuntimeError("a table of another rank")
    if not b.owns(weight) and not scale_grad_by_freq:
        return fused.embedding(weight, b.whole(indices), padding_idx)
    # how often a row is looked up is counted for each sample
    at = placed(b, indices, weight.shape[0])
    rows = fused.embedding(rows_folded(b.whole(weight)), at, -1, scale_grad_by_freq)
    if padding_idx < 0:
        return rows
    # the rows that get no gradient, of all samples, as the one row of a table that gets none
    padding = fused.embedding(b.whole(weight)[:, padding_idx].reshape(1, -1), at.new_zeros(()), 0)
    padding = padding.reshape((b.size, *(1,) * indices.dim(), weight.shape[1]))
    return tg.where((b.whole(indices) == padding_idx).unsqueeze(-1), padding, rows)


def embedding_backward(b, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    grad = b.whole(grad_output)
    if padding_idx >= 0:
        grad = grad.masked_fill((b.whole(indices) == padding_idx).unsqueeze(-1), 0)
    at = placed(b, indices, num_weights)
    found = fused.embedding_dense_backward(grad, at, b.size * num_weights, -1, scale_grad_by_freq)
    return found.reshape((b.size, num_weights, grad.shape[-1]))


def one_hot(b, self, num_classes):
    if num_classes < 0:
        raise RuntimeError(
            "vmap: one_hot: the number of classes depends on the data, so it may differ from sample to sample: please "
            "provide an explicit positive num_classes argument"
        )
    return fused.one_hot(b.whole(self), num_classes)


def embedding_renorm(b, self, indices, max_norm, norm_type):
    found = fused._embedding_renorm(rows_folded(b.whole(self)), placed(b, indices, self.shape[0]), max_norm, norm_type)
    return found.reshape((b.size, *self.shape))
