"""Derivatives of the derivatives of layer norm and batch norm, in ops.

With y = (x - mean) r over M elements and v = grad * weight, the first derivative is

    dx = r (v - mean(v) - y mean(v y)),    dweight = sum(grad y),    dbias = sum(grad).

P(u) = r (u - mean(u) - y mean(u y)) is symmetric, so <u, dx> = <P(u), v>; r and y depend on x by
dr = -r² mean(y dx) and dy = P(dx).
"""


def _twice(u, uw, ub, grad, x, weight, mean, r, dims, spread):
    """Gradients by grad, x and weight, for incoming u, uw, ub of dx, dweight, dbias (any may be None).

    dims are those that mean runs over; weight, uw and ub are shaped to broadcast; spread sums to the shape of weight.
    """

    def average(t):
        return t.mean(dims, keepdim=True)

    def project(t):
        return r * (t - average(t) - y * average(t * y))

    y = (x - mean) * r
    v = grad if weight is None else grad * weight
    by_grad = by_y = by_weight = 0
    by_x = 0
    if u is not None:
        pu = project(u)
        by_grad = pu if weight is None else pu * weight
        by_weight = None if weight is None else spread(grad * pu)
        by_y = -r * (average(v * y) * u + average(u * y) * v)
        by_x = -r * y * average(pu * v)
    if uw is not None:
        by_grad = by_grad + uw * y
        by_y = by_y + uw * grad
    if ub is not None:
        by_grad = by_grad + ub.expand(grad.shape)
    if u is not None or uw is not None:
        by_x = by_x + project(by_y)
    return tuple(t if hasattr(t, "shape") else None for t in (by_grad, by_x, by_weight))


def layer_norm_twice(grad_dx, grad_dweight, grad_dbias, grad_output, self, normalized_shape, weight, eps, output_mask):
    """Rule of _layer_norm_backward."""
    dims = tuple(range(-len(normalized_shape), 0))
    outer = tuple(range(self.dim() - len(normalized_shape)))
    mean = self.mean(dims, keepdim=True)
    r = ((self - mean) * (self - mean)).mean(dims, keepdim=True).add(eps).rsqrt()
    u, uw, ub = (g if wanted else None for g, wanted in zip((grad_dx, grad_dweight, grad_dbias), output_mask))
    return _twice(u, uw, ub, grad_output, self, weight, mean, r, dims, lambda t: t.sum(outer) if outer else t)


def group_norm_twice(grad_dx, grad_gains, grad_shifts, grad_output, self, num_groups, weight, eps):
    """Rule of _group_norm_backward, whose second and third result are sums of each channel of an example."""
    examples, channels = self.shape[:2]
    groups, space = (num_groups, channels // max(num_groups, 1)), self.shape[2:].numel()

    def parted(t, *around):
        return t if t is None else t.reshape(around[0], *groups, around[1])

    grad, x, u = (parted(t, examples, space) for t in (grad_output, self, grad_dx))
    uw, ub = (parted(t, examples, 1) for t in (grad_gains, grad_shifts))
    mean = x.mean((2, 3), keepdim=True)
    r = ((x - mean) * (x - mean)).mean((2, 3), keepdim=True).add(eps).rsqrt()
    by_grad, by_x, by_weight = _twice(
        u, uw, ub, grad, x, parted(weight, 1, 1), mean, r, (2, 3), lambda t: t.sum((0, 3)).reshape(channels)
    )
    back = lambda t: t if t is None else t.reshape(self.shape)
    return back(by_grad), back(by_x), by_weight


def batch_norm_twice(
    grad_dx, grad_dweight, grad_dbias, grad_output, self, weight, mean, invstd, training, eps, output_mask
):
    """Rule of _batch_norm_backward."""
    dims = (0, *range(2, self.dim()))
    shape = (1, -1, *[1] * (self.dim() - 2))
    u, uw, ub = (g if wanted else None for g, wanted in zip((grad_dx, grad_dweight, grad_dbias), output_mask))
    uw, ub, w = (t if t is None else t.reshape(shape) for t in (uw, ub, weight))
    if not training:
        return _fixed_twice(u, uw, ub, grad_output, self, w, mean.reshape(shape), invstd.reshape(shape), dims)
    mean = self.mean(dims, keepdim=True)
    r = ((self - mean) * (self - mean)).mean(dims, keepdim=True).add(eps).rsqrt()
    return _twice(u, uw, ub, grad_output, self, w, mean, r, dims, lambda t: t.sum(dims))


def _fixed_twice(u, uw, ub, grad, x, weight, mean, r, dims):
    """The same with constant mean and r: dx = grad weight r."""
    by_grad = by_x = 0
    by_weight = None
    if u is not None:
        by_grad = u * r if weight is None else u * r * weight
        by_weight = None if weight is None else (u * grad * r).sum(dims)
    if uw is not None:
        by_grad = by_grad + uw * (x - mean) * r
        by_x = uw * grad * r
    if ub is not None:
        by_grad = by_grad + ub.expand(grad.shape)
    return tuple(t if hasattr(t, "shape") else None for t in (by_grad, by_x, by_weight))
