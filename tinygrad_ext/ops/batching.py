"""How ops go through vmap where no word says it: shapes, reductions of everything, products.

A rule gets the level `b` and the arguments as the program sees them, and returns tensors whose dimension 0 is the
batch: `b.whole(x)` is the tensor behind x, repeated where all samples share it; `b.owns(x)` tells which is which.
"""

import functools

import tinygrad_ext as tg
from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.shapes import wrapped

# ---- errors --------------------------------------------------------------------------------------------------------


def told(name):
    """A rule whose errors are those of the first sample that the op refuses: their numbers count no batch.

    So a rule may refuse what it does not like in a word, and leave the message to the op.
    """

    def decorated(rule):
        @functools.wraps(rule)
        def tried(b, *args):
            try:
                return rule(b, *args)
            except (IndexError, RuntimeError, ValueError, TypeError):
                call = operation(ops["aten::" + name])
                for k in range(max(b.size, 1)):
                    call(*[_sample(b, a, k) for a in args])
                raise

        return tried

    return decorated


def unfit(name):
    """The error of a rule that leaves the message to its op (see told)."""
    return RuntimeError(f"{name}: the sizes or dtypes of the arguments of a sample do not fit together; see {name}")


def _sample(b, a, k):
    """Sample k of an argument; zeros of its sizes where there are no samples."""
    if b.owns(a):
        return b.whole(a)[k] if b.size else b.whole(a).new_zeros(a.shape)
    return [_sample(b, x, k) for x in a] if isinstance(a, (list, tuple)) else a


# ---- shapes --------------------------------------------------------------------------------------------------------


def after(dim, rank):
    """Where dimension `dim` of `rank` ones stands behind the batch."""
    return wrapped(dim, max(rank, 1)) + 1


def widened(tensor, rank):
    """A tensor with a batch in front, with ones behind it that make up `rank` dimensions besides."""
    missing = rank + 1 - tensor.dim()
    return tensor.reshape((tensor.shape[0], *(1,) * missing, *tensor.shape[1:])) if missing > 0 else tensor


def expand(b, self, size, implicit=False):
    return widened(b.whole(self), len(size)).expand((b.size, *size))


def expand_as(b, self, other):
    return expand(b, self, other.shape)


def sized(b, self, size):
    """A new size with the batch in front. Of an empty batch -1 is found by a sample's own number of elements."""
    size = tuple(size)
    if not b.size and -1 in size:
        size = tg.zeros(()).expand(self.shape).reshape(size).shape
    return b.size, *size


def view(b, self, size):
    return b.whole(self).view(sized(b, self, size))


def view_dtype(b, self, dtype):
    if self.dim() == 0 and dtype.itemsize != self.dtype.itemsize:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {self.dtype} as {dtype} (different element sizes): view() of a sample"
        )
    return b.whole(self).view(dtype)


def reshape(b, self, shape):
    return b.whole(self).reshape(sized(b, self, shape))


def view_as(b, self, other):
    return view(b, self, other.shape)


def reshape_as(b, self, other):
    return reshape(b, self, other.shape)


def flatten(b, self, start_dim, end_dim):
    whole, rank = b.whole(self), self.dim()
    return whole.flatten(after(start_dim, rank), after(end_dim, rank)) if rank else whole.unsqueeze(1)


def ravel(b, self):
    return b.whole(self).reshape((b.size, self.numel()))


def unflatten(b, self, dim, sizes):
    return b.whole(self).unflatten(after(dim, self.dim()), sizes)


def squeeze(b, self):
    return b.whole(self).squeeze([i + 1 for i, s in enumerate(self.shape) if s == 1])


def unsqueeze(b, self, dim):
    return b.whole(self).unsqueeze(after(dim, self.dim() + 1))


def permute(b, self, dims):
    rank = self.dim()
    return b.whole(self).permute([0, *(after(d, rank) for d in dims)])


def t(b, self):
    if self.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    return b.whole(self).transpose(1, 2) if self.dim() == 2 else b.whole(self)


def as_strided(b, self, size, stride, storage_offset=None):
    """The offset is that of the first sample."""
    whole = b.whole(self)
    offset = whole.storage_offset() if storage_offset is None else storage_offset
    return whole.as_strided((b.size, *size), (whole.stride(0), *stride), offset)


def basic_index(b, self, index):
    index = index if isinstance(index, tuple) else (index,)
    return b.whole(self)[(slice(None), *index)]


def basic_index_backward(b, grad, size, index):
    index = index if isinstance(index, tuple) else (index,)
    return b.whole(grad)._basic_index_backward((b.size, *size), (slice(None), *index))


def stack(b, tensors, dim):
    return tg.stack([b.whole(x) for x in tensors], after(dim, tensors[0].dim() + 1))


def cat(b, tensors, dim):
    """One of shape (0,) is passed over, as without a batch, where it would be one of two dimensions here."""
    kept = [t for t in tensors if tuple(t.shape) != (0,)] or tensors
    kind = functools.reduce(tg.promote_types, [t.dtype for t in tensors])
    return tg.cat([b.whole(t) for t in kept], wrapped(dim, kept[0].dim()) + 1).to(kind)


def roll(b, self, shifts, dims):
    whole, rank = b.whole(self), self.dim()
    dims = [dims] if isinstance(dims, int) else dims
    if dims:
        return whole.roll(shifts, [after(d, rank) for d in dims])
    return whole.reshape((b.size, self.numel())).roll(shifts, [1]).reshape(whole.shape)


def diag_embed(b, self, offset, dim1, dim2):
    rank = self.dim() + 1
    return b.whole(self).diag_embed(offset, after(dim1, rank), after(dim2, rank))


def repeat(b, self, repeats):
    return widened(b.whole(self), len(repeats)).repeat((1, *repeats))


# ---- memory --------------------------------------------------------------------------------------------------------


def new_filled(name, values=0):
    """`new_zeros` and its like: values: how many arguments stand between the size and the options."""

    def rule(b, self, size, *rest):
        dtype, _, device, _, requires_grad = rest[values:]
        made = getattr(b.whole(self), name)((b.size, *size), *rest[:values], dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made

    return rule


def new_empty_strided(b, self, size, stride, dtype, layout, device, pin_memory, requires_grad):
    """The memory of one sample behind that of the other."""
    reach = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    made = b.whole(self).new_empty_strided((b.size, *size), (reach, *stride), dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def copy(b, self, src, non_blocking=False):
    return widened(b.whole(src), self.dim()).to(self.dtype).expand(b.whole(self).shape)


def fill(b, self, value):
    return copy(b, self, value)


# ---- reductions of everything --------------------------------------------------------------------------------------


def rows(b, self):
    """The tensor behind a value, with all that the program sees in one dimension."""
    return b.whole(self).reshape((b.size, self.numel()))


def whole_sum(name):
    """sum, mean and prod of all elements."""

    def rule(b, self, dtype=None):
        if name == "prod" or not self.dim():
            return getattr(rows(b, self), name)(1, dtype=dtype)
        return getattr(b.whole(self), name)(list(range(1, self.dim() + 1)), dtype=dtype)

    return rule


def whole(name):
    """Reductions of all elements by those of one dimension."""
    return lambda b, self: getattr(rows(b, self), name)(1)


def whole_moment(name):
    """var, std, var_mean and std_mean of all elements."""
    return lambda b, self, unbiased=True: getattr(tg, name)(rows(b, self), 1, unbiased)


def whole_middle(name):
    """median and nanmedian of all elements, of which equal ones share the gradient."""

    def rule(b, self):
        x = rows(b, self)
        value = getattr(x, name)(1).values.detach()
        if not x.is_floating_point():
            return value
        equal = (x == value.unsqueeze(1)) | (x.isnan() & value.isnan().unsqueeze(1))
        # the largest of the equal ones, or the smallest, so that what is not finite stays as it is
        infinity = float("inf")
        largest = tg.where(equal, x, -infinity).amax(1)
        return tg.where(value == -infinity, tg.where(equal, x, infinity).amin(1), largest)

    return rule


def count_nonzero(b, self, dim=None):
    return (rows(b, self) if dim is None else b.whole(self)).count_nonzero(1 if dim is None else after(dim, self.dim()))


def place_of(name):
    """argmax and argmin."""

    def rule(b, self, dim=None, keepdim=False):
        if dim is not None and self.dim():
            return getattr(b.whole(self), name)(after(dim, self.dim()), keepdim)
        found = getattr(rows(b, self), name)(1)
        return found.reshape((b.size, *(1,) * self.dim())) if keepdim else found

    return rule


# ---- products ------------------------------------------------------------------------------------------------------


def matmul(b, self, other):
    left, right = self.dim(), other.dim()
    if not left or not right:
        raise RuntimeError(
            f"matmul: both arguments need to be at least 1D, but they are {left}D and {right}D; multiply with * where "
            "one is a number"
        )
    if b.owns(self) and not b.owns(other) and left <= 2 and right == 2:
        return b.whole(self) @ other
    if not b.owns(self) and not b.owns(other):
        shared = self @ other
        return shared.expand((b.size, *shared.shape))
    a = b.whole(self) if b.owns(self) else self
    c = b.whole(other) if b.owns(other) else other
    a, c = a.unsqueeze(-2) if left == 1 else a, c.unsqueeze(-1) if right == 1 else c
    rank = max(left, right, 2)
    product = (widened(a, rank) if b.owns(self) else a) @ (widened(c, rank) if b.owns(other) else c)
    product = product.squeeze(-2) if left == 1 else product
    return product.squeeze(-1) if right == 1 else product


def product(name, *ranks):
    """A product that takes samples of these ranks alone: matmul would see a batch in what is too many."""

    def rule(b, self, other):
        found = self.dim(), other.dim()
        if found != ranks:
            raise RuntimeError(
                f"{name}(): Shape mismatch: expected a {ranks[0]}D and a {ranks[1]}D tensor in each sample of vmap, "
                f"but got {found[0]}D and {found[1]}D; matmul() takes batches and single vectors"
            )
        if found == (3, 3) and self.shape[0] != other.shape[0]:
            raise RuntimeError(
                f"{name}(): Shape mismatch: expected as many matrices in both arguments of each sample of vmap, "
                f"but got {self.shape[0]} and {other.shape[0]}; matmul() repeats a single one"
            )
        return matmul(b, self, other)

    return rule


def added(name, *ranks):
    """beta self + alpha (left @ right): what self holds does not count where beta is 0."""
    multiplied = product(name, *ranks)

    def rule(b, self, left, right, beta=1, alpha=1):
        result = multiplied(b, left, right)
        if self.dim() >= result.dim():
            raise RuntimeError(
                f"{name}(): expected `self` to expand to {list(result.shape[1:])} in each sample of vmap, but it is "
                f"{self.dim()}D with the shape {list(self.shape)}; take part of it, or add it to the product"
            )
        start = widened(b.whole(self), result.dim() - 1) if b.owns(self) else self
        start = start.expand(result.shape)  # the result has the product's shape, whatever adding would make of the two
        if beta == 0:
            return result * alpha if alpha != 1 else result
        return tg.add(start if beta == 1 else start * beta, result, alpha=alpha).to(result.dtype)

    return rule


def linear(b, input, weight, bias=None):
    if not b.owns(weight) and not b.owns(bias):
        return fused.linear(b.whole(input), weight, bias)
    if b.owns(weight) and weight.dim() == 2 and input.dim() <= 2:
        x = b.whole(input)
        x = x.unsqueeze(1) if input.dim() == 1 else x
        turned = b.whole(weight).transpose(1, 2)
        if bias is None:
            product = x.bmm(turned)
        else:
            product = tg.baddbmm(bias if not b.owns(bias) else b.whole(bias).unsqueeze(1), x, turned)
        return product.squeeze(1) if input.dim() == 1 else product
    turned = weight
    if weight.dim() == 2:
        turned = b.wrap(b.whole(weight).transpose(1, 2)) if b.owns(weight) else weight.t()
    product = matmul(b, input, turned)
    if bias is None:
        return product
    return product + (widened(b.whole(bias), product.dim() - 1) if b.owns(bias) else bias)
