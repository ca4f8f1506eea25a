"""Forward mode of ops that are neither linear nor pointwise: the functions that stand as `jvp=` in the records.

Parameters name what a function needs: an argument, its tangent (None for zeros), `result` or a named result. The
answer is the tangent of each result, None for zeros. A function is called with at least one tangent.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.fused import fused


def plus(a, b):
    """The sum of two tangents, each of which may be None for zeros."""
    return b if a is None else a if b is None else a + b


# ---- chosen elements -----------------------------------------------------------------------------------------------


def along(self_tangent, dim, indices):
    """Of values chosen along a dimension, which stay in their rows."""
    return (self_tangent.gather(dim, indices) if self_tangent.dim() else self_tangent), None


def reduced(self_tangent, dim, keepdim, indices):
    """Of one value chosen along a dimension."""
    if not self_tangent.dim():
        return self_tangent.clone(), None
    kept = indices if keepdim else indices.unsqueeze(dim)
    found = self_tangent.gather(dim, kept)
    return (found if keepdim else found.squeeze(dim)), None


def pooled(dims):
    """Of the largest element of each window."""
    return lambda self_tangent, indices: (self_tangent._max_pool_gather(indices, dims), None)


def value_reduce(self_tangent, dim, index, value, reduce):
    if reduce == "add":
        return self_tangent.clone()
    return tg.scatter(self_tangent, dim, index, value, reduce=reduce)


# ---- products ------------------------------------------------------------------------------------------------------


def _added(result, self_tangent, beta, alpha, a, a_tangent, b, b_tangent):
    """Of beta * self + alpha * (a @ b)."""
    total = None if self_tangent is None else (self_tangent * beta).expand(result.shape)
    if a_tangent is not None:
        total = plus(total, a_tangent.matmul(b) * alpha)
    if b_tangent is not None:
        total = plus(total, a.matmul(b_tangent) * alpha)
    return total


def addmm(result, self_tangent, mat1, mat1_tangent, mat2, mat2_tangent, beta, alpha):
    return _added(result, self_tangent, beta, alpha, mat1, mat1_tangent, mat2, mat2_tangent)


def addmv(result, self_tangent, mat, mat_tangent, vec, vec_tangent, beta, alpha):
    return _added(result, self_tangent, beta, alpha, mat, mat_tangent, vec, vec_tangent)


def baddbmm(result, self_tangent, batch1, batch1_tangent, batch2, batch2_tangent, beta, alpha):
    return _added(result, self_tangent, beta, alpha, batch1, batch1_tangent, batch2, batch2_tangent)


def solve(A, result, A_tangent, B_tangent):
    """A X = B: A X' = B' - A' X."""
    right = None if A_tangent is None else -A_tangent.matmul(result)
    right = plus(B_tangent, right)
    return fused._solve(A, right.expand(result.shape))


# ---- running products ----------------------------------------------------------------------------------------------


def _earlier(tensor, dim):
    """The element before each one along dim; zero for the first."""
    n = tensor.shape[dim]
    return tg.cat((tensor.narrow(dim, 0, min(n, 1)) * 0, tensor.narrow(dim, 0, max(n - 1, 0))), dim)


def cumprod(self, self_tangent, result, dim, dtype):
    """y[k]' = y[k-1]' x[k] + y[k-1] x[k]', which needs no division."""
    self = self if dtype is None else self.to(dtype)
    slope = self_tangent.to(result.dtype)
    if not self.dim() or not self.numel():
        return slope
    first = tg.cat((self.new_ones(self.narrow(dim, 0, 1).shape), result.narrow(dim, 0, self.shape[dim] - 1)), dim)
    return (first * slope)._linear_scan(self, dim)


def linear_scan(self_tangent, decay, decay_tangent, result, dim):
    """h[k]' = x[k]' + d[k] h[k-1]' + d[k]' h[k-1]."""
    drive = self_tangent
    if decay_tangent is not None and result.dim():
        drive = plus(drive, decay_tangent * _earlier(result, dim))
    return None if drive is None else drive._linear_scan(decay, dim)


# ---- softmax, normalization ----------------------------------------------------------------------------------------


def log_softmax(self_tangent, result, dim):
    dim = dim if dim is not None else 0 if result.dim() in (0, 1, 3) else 1
    slope = self_tangent.to(result.dtype)
    return slope - (result.exp() * slope).sum(dim, keepdim=True)


def softmax_backward(grad_output, grad_output_tangent, output, output_tangent, dim, input_dtype):
    total = None
    if grad_output_tangent is not None:
        total = fused._softmax_backward_data(grad_output_tangent, output, dim, input_dtype)
    if output_tangent is not None:
        level = (grad_output * output).sum(dim, keepdim=True)
        moved = (grad_output * output_tangent).sum(dim, keepdim=True)
        total = plus(total, (output_tangent * (grad_output - level) - output * moved).to(input_dtype))
    return total


def log_softmax_backward(grad_output, grad_output_tangent, output, output_tangent, dim, input_dtype):
    total = None
    if grad_output_tangent is not None:
        total = fused._log_softmax_backward_data(grad_output_tangent, output, dim, input_dtype)
    if output_tangent is not None:
        moved = output.exp() * output_tangent * grad_output.sum(dim, keepdim=True)
        total = plus(total, (-moved).to(input_dtype))
    return total


def layer_norm(input, input_tangent, normalized_shape, weight, weight_tangent, bias_tangent, eps, result):
    """Without weight the derivative is symmetric, so the backward kernel serves."""
    total = None
    if input_tangent is not None:
        mask = (True, False, False)
        total = fused._layer_norm_backward(input_tangent, input, normalized_shape, None, eps, mask)[0]
        total = total if weight is None else total * weight
    if weight_tangent is not None:
        total = plus(total, tg.layer_norm(input, normalized_shape, None, None, eps) * weight_tangent)
    if bias_tangent is not None:
        total = plus(total, bias_tangent)
    return total.expand(result.shape)


def batch_norm(input, input_tangent, weight, weight_tangent, bias_tangent, training, eps, out, save_mean, save_invstd):
    def spread(row):
        return row.reshape([1, -1, *[1] * (input.dim() - 2)])

    total = None
    if input_tangent is not None:
        mask = (True, False, False)
        given = (input_tangent, input, weight, save_mean, save_invstd, training, eps, mask)
        total = fused._batch_norm_backward(*given)[0]
    if weight_tangent is not None:
        plain = (input - spread(save_mean)) * spread(save_invstd)
        if training:  # differentiable through the statistics
            plain = fused.native_batch_norm(input, None, None, None, None, True, 0.0, eps)[0]
        total = plus(total, plain * spread(weight_tangent))
    if bias_tangent is not None:
        total = plus(total, spread(bias_tangent))
    return total.expand(out.shape), None, None


# ---- losses --------------------------------------------------------------------------------------------------------


def mse_loss(self, self_tangent, target, target_tangent, reduction):
    slope = plus(self_tangent, None if target_tangent is None else -target_tangent)
    found = 2 * (self - target) * slope
    return found if reduction == "none" else getattr(found, reduction)()


def mse_loss_backward(grad_output, grad_output_tangent, self, self_tangent, target, target_tangent, reduction):
    total = None
    if grad_output_tangent is not None:
        total = fused._mse_loss_backward(grad_output_tangent, self, target, reduction)
    if self_tangent is not None or target_tangent is not None:
        sides = [tg.zeros_like(x) if t is None else t for x, t in ((self, self_tangent), (target, target_tangent))]
        total = plus(total, fused._mse_loss_backward(grad_output, *sides, reduction))
    return total


def cross_entropy(self, self_tangent, loss, lse, target, weight, reduction, ignore_index):
    """A loss hangs on the classes of its own sample, so the gradient of ones has every factor."""
    slopes = fused._cross_entropy_backward(tg.ones_like(loss), self, lse, target, weight, reduction, ignore_index)
    found = slopes * self_tangent
    return (found.sum(min(1, self.dim() - 1)) if reduction == "none" else found.sum()), None


def angle(self, self_tangent, result):
    """The part of the tangent across the value."""
    if not self.is_complex():
        return self_tangent * 0
    square = self.real * self.real + self.imag * self.imag
    return (self.conj_physical() * self_tangent).imag / fused.where(square == 0, 1, square)


def absolute(self, self_tangent, result):
    """The part of the tangent in the direction of the value."""
    if self.is_complex():
        return (self.sgn().conj_physical() * self_tangent).real
    return self_tangent * self.sgn()
