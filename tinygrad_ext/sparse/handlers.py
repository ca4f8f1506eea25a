"""What each function does with tensors of the layout sparse_coo, by the function's name."""

import math
import numbers

import tinygrad_ext as tg
from tinygrad_ext.core.data.dtype import sparse_coo
from tinygrad_ext.core.data.tensor import Tensor

from .compressed import compress
from .coo import HANDLERS, SparseTensor, flat, from_dense, sparse_coo_tensor


def handler(*names):
    def take(function):
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return take


def wrapped(dim, rank):
    rank = max(rank, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


def _is_number(x):
    return isinstance(x, numbers.Number) or (isinstance(x, Tensor) and not isinstance(x, SparseTensor) and x.dim() == 0)


def _plain(x):
    return x.to_dense() if isinstance(x, SparseTensor) else x


# ---- products ------------------------------------------------------------------------------------------------------


@handler("mm", "matmul", "__matmul__", "mv", "bmm", "spmm", "dsmm")
def matmul(self, mat2):
    """Sparse with dense is dense, sparse with sparse is sparse."""
    if isinstance(self, SparseTensor) and isinstance(mat2, SparseTensor):
        return from_dense(self.to_dense().matmul(mat2.to_dense()))
    if not isinstance(self, SparseTensor):
        if self.dim() == 1:
            return matmul(mat2.t(), self)
        return matmul(transpose(mat2, -2, -1), self.transpose(-2, -1)).transpose(-2, -1)
    return _with_dense(self, mat2)


def _with_dense(a, dense):
    indices, values, _ = a._parts
    *batch, rows, columns = a.shape
    vector = dense.dim() == 1
    dense = dense.unsqueeze(-1) if vector else dense
    if a.dense_dim() or dense.dim() != a.dim() or [*dense.shape[:-1]] != [*batch, columns]:
        if a.dense_dim() or a.dim() != 2 or dense.dim() < 2 or dense.size(-2) != columns:
            raise RuntimeError(f"matmul(): cannot multiply sparse {list(a.shape)} by {list(dense.shape)}")
        moved = dense.movedim(-2, 0)
        found = _with_dense(a, moved.reshape(columns, -1)).reshape(rows, *moved.shape[1:])
        return found.movedim(0, -2)
    outer = flat(indices[:-2], batch)
    took = dense.reshape(-1, dense.size(-1)).index_select(0, outer * columns + indices[-1])
    found = dense.new_zeros((math.prod(batch) * rows, dense.size(-1)))
    found = found.index_add(0, outer * rows + indices[-2], values.unsqueeze(-1) * took)
    return found.reshape(*batch, rows) if vector else found.reshape(*batch, rows, dense.size(-1))


def reduced(mat1, mat2, reduce):
    """The mean, largest or smallest of the products of each row."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise ValueError(f"mm(): reduce must be 'sum', 'mean', 'amax' or 'amin', but got {reduce!r}")
    if not isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        raise RuntimeError(f"mm(): reduce={reduce!r} takes a sparse matrix and a plain one")
    if mat1.dim() != 2 or mat1.dense_dim() or mat2.dim() != 2 or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mm(): cannot multiply sparse {list(mat1.shape)} by {list(mat2.shape)}")
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(f"mm(): expected mat1 and mat2 of one dtype, but got {mat1.dtype} and {mat2.dtype}")
    (rows, columns), values, _ = mat1._parts
    products = values.unsqueeze(-1) * mat2.index_select(0, columns)
    found = products.new_zeros((mat1.shape[0], mat2.shape[1]))
    rows = rows.unsqueeze(-1).expand_as(products)
    if reduce == "mean":
        return found.scatter_reduce(0, rows, products, reduce, include_self=False)
    # nothing to choose from: a sum of nothing keeps the history
    return _first_of_all(found, rows, products, reduce) if rows.numel() else found.index_add(0, rows[:, 0], products)


def _first_of_all(found, rows, products, reduce):
    """The largest or smallest product of each row; of equal ones the first gets the gradient, as in PyTorch."""
    with tg.no_grad():
        ends = found.scatter_reduce(0, rows, products, reduce, include_self=False).gather(0, rows)
        chosen = (products == ends) | (products != products)
        count = products.shape[0]
        at = tg.arange(count).unsqueeze(-1).expand_as(products).masked_fill(~chosen, count)
        first = tg.full(found.shape, count, dtype=tg.int64).scatter_reduce(0, rows, at, "amin")
        empty = first == count
    return products.gather(0, first.masked_fill(empty, 0)).masked_fill(empty, 0)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)``"""
    return input * beta + matmul(mat1, mat2) * alpha


HANDLERS.update(addmm=addmm, sspaddmm=addmm, compress=compress)


@handler("lobpcg")
def lobpcg(A, k=None, B=None, *args, **options):
    """Eigenpairs of the plain matrices."""
    return tg.lobpcg(_plain(A), k, _plain(B), *args, **options)


@handler("linear")
def linear(input, weight, bias=None):
    """``input @ weight.T + bias``"""
    found = matmul(input, weight.t())
    return found if bias is None else found + bias


# ---- element by element --------------------------------------------------------------------------------------------


@handler("add", "__add__", "__radd__")
def add(self, other, *, alpha=1):
    """Two sparse: sparse. With a plain tensor: plain."""
    if not isinstance(other, SparseTensor):
        return self.to_dense().add(other, alpha=alpha)
    if not isinstance(self, SparseTensor):
        return self.add(other.to_dense(), alpha=alpha)
    if self.shape != other.shape or self.dense_dim() != other.dense_dim():
        sizes = f"{list(self.shape)} and {list(other.shape)}"
        raise RuntimeError(f"add(): expected sparse tensors of one size, got {sizes}")
    indices, values = tg.cat([self._parts[0], other._parts[0]], 1), tg.cat([self._parts[1], other._parts[1] * alpha])
    found = SparseTensor(indices, values, self.shape)
    in_order = all(t.layout is sparse_coo and t.is_coalesced() for t in (self, other))
    return found.coalesce() if in_order else found


@handler("sub", "__sub__")
def sub(self, other, *, alpha=1):
    """As `add`."""
    return add(self, other, alpha=-alpha)


@handler("mul", "__mul__", "__rmul__", "multiply")
def mul(self, other):
    """By a number or a plain tensor: nothing is computed where nothing is stored."""
    if not isinstance(self, SparseTensor):
        self, other = other, self
    if _is_number(other):
        return self.with_values(self._parts[1] * other)
    if isinstance(other, SparseTensor):
        return from_dense(self.to_dense() * other.to_dense())
    return self.with_values(self._parts[1] * other.expand(self.shape)[tuple(self._parts[0])])


def _once(tensor):
    """The tensor with each place once."""
    return tensor if tensor.layout is not sparse_coo else tensor.coalesce()


@handler("div", "__truediv__", "true_divide", "divide")
def div(self, other, *, rounding_mode=None):
    """By a number."""
    if not isinstance(self, SparseTensor) or not _is_number(other):
        raise RuntimeError("div(): a sparse tensor can be divided by a number only")
    whole = _once(self)
    return whole.with_values(whole._parts[1].div(other, rounding_mode=rounding_mode))


def _on_values(name):
    def call(self, *args, **kwargs):
        whole = _once(self)
        return whole.with_values(getattr(whole._parts[1], name)(*args, **kwargs))

    return call


# all of these keep zero as it is
_ZERO_STAYS = """
    abs sqrt square sin tan tanh asin atan asinh atanh sinh expm1 log1p sign sgn relu ceil floor round trunc frac
    erf erfinv deg2rad rad2deg nan_to_num isnan isinf isposinf isneginf signbit
"""
for _name in _ZERO_STAYS.split():
    HANDLERS[_name] = _on_values(_name)
HANDLERS["__abs__"] = HANDLERS["abs"]


@handler("floor_divide", "__floordiv__")
def floor_divide(self, other):
    """By a number, rounded down."""
    return div(self, other, rounding_mode="floor")


@handler("pow", "__pow__")
def pow(self, exponent):
    """To a positive power, by which zero stays zero."""
    if not _is_number(exponent) or not exponent > 0:
        raise RuntimeError(f"pow(): a sparse tensor can be raised to a positive number only, not to {exponent!r}")
    return _on_values("pow")(self, exponent)


def _kept(name):
    return lambda self, *args, **kwargs: self.with_values(getattr(self._parts[1], name)(*args, **kwargs))


_VALUES_ALONE = """
    neg negative conj_physical clone detach to float double half bfloat16 long int cpu contiguous type_as
"""
for _name in _VALUES_ALONE.split():
    HANDLERS[_name] = _kept(_name)
HANDLERS["__neg__"], HANDLERS["positive"] = HANDLERS["neg"], lambda input: input


@handler("is_conj", "is_neg")
def is_flipped(self):
    """False: values are kept without those bits."""
    return False


@handler("type")
def type_(self, dtype=None, **kwargs):
    """The name of the type, or the tensor in another."""
    if dtype is None:
        return self._parts[1].type().replace("torch.", "torch.sparse.")
    return self.with_values(self._parts[1].type(dtype))


# ---- shape ---------------------------------------------------------------------------------------------------------


@handler("transpose", "swapaxes", "swapdims")
def transpose(self, dim0, dim1):
    """Two sparse dimensions exchanged."""
    rank = self.sparse_dim()
    a, b = (wrapped(d, self.dim()) for d in (dim0, dim1))
    if max(a, b) >= rank:
        raise RuntimeError("transpose(): dimensions of the values of a sparse tensor cannot be exchanged")
    order, size = list(range(rank)), list(self.shape)
    order[a], order[b] = b, a
    size[a], size[b] = size[b], size[a]
    return SparseTensor(self._parts[0][order], self._parts[1], size)


@handler("t")
def t(self):
    """The transpose of a matrix."""
    sparse, dense = self.sparse_dim(), self.dense_dim()
    if sparse > 2 or dense:
        told = f"got {sparse} sparse and {dense} dense dimensions"
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but {told}")
    return transpose(self, 0, 1) if self.dim() == 2 else self


@handler("__getitem__")
def getitem(self, key):
    """An index or slice, as a sparse tensor; plain where no dimension of places is left."""
    if isinstance(key, int) and not isinstance(key, bool):
        return HANDLERS["select"](self, 0, key)
    found = self.to_dense()[key]
    return from_dense(found) if found.dim() else found


@handler("index_select")
def index_select(self, dim, index):
    """Some indices of a dimension, as a sparse tensor."""
    return from_dense(self.to_dense().index_select(dim, index))


@handler("sum")
def sum(self, dim=None, keepdim=False, *, dtype=None):
    """All, or over all dimensions of places: a plain tensor. Over some dimensions: sparse."""
    values = self._parts[1] if dtype is None else self._parts[1].to(dtype)
    if dim is None:
        return values.sum()
    rank = self.sparse_dim()
    dims = {wrapped(d, self.dim()) for d in ([dim] if isinstance(dim, int) else dim)}
    found = self.to_dense(dtype).sum(dim, keepdim) if dims else self.to_dense(dtype)
    return found if dims.issuperset(range(rank)) else from_dense(found)


@handler("norm", "native_norm")
def norm(self, p=2, dim=None, keepdim=False, dtype=None):
    """Of all stored elements."""
    dims = {wrapped(d, self.dim()) for d in ([dim] if isinstance(dim, int) else dim or range(self.dim()))}
    if len(dims) != self.dim():
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            f"dimensions of the input, got {dim}: to_dense() first"
        )
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True: to_dense() first")
    return _once(self)._parts[1].norm(2 if p is None else p, dtype=dtype)


@handler("vector_norm")
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """Of all stored elements, for an order to which zeros add nothing."""
    if dim is not None or keepdim or not ord > 0:
        raise NotImplementedError("vector_norm(): of a sparse tensor only that of all elements, of an order above 0")
    values = _once(x)._parts[1]
    return tg.linalg.vector_norm(values, ord, dtype=dtype) if values.numel() else values.new_zeros((), dtype=dtype)


@handler("equal")
def equal(self, other):
    """Whether both are the same tensor, however they are stored."""
    return _plain(self).equal(_plain(other))


@handler("zero_")
def zero_(self):
    """Drop all elements."""
    if hasattr(self, "_compressed"):
        compressed, plain, layout = self._compressed
        self._compressed = tg.zeros_like(compressed), plain[:0], layout
    indices, values, _ = self._parts
    self._parts = indices[:, :0], values[:0], True
    return self


@handler("new")
def new(self, *args, **options):
    """A tensor of the same layout and dtype: of indices, values and a size, or of a size that stores nothing."""
    sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    if args and isinstance(args[0], Tensor):
        return sparse_coo_tensor(*args, dtype=self.dtype, **options)
    return sparse_coo_tensor(size=tuple(sizes) or (0,), dtype=self.dtype, **options)


# properties
SparseTensor.mT = property(lambda self: transpose(self, -2, -1))
SparseTensor.T = property(t)
SparseTensor.H = property(lambda self: self.T.conj_physical())


@handler("zeros_like")
def zeros_like(input, *, dtype=None, layout=None, device=None, memory_format=None, **options):
    """A tensor of the same size and layout that stores nothing."""
    if memory_format not in (None, tg.preserve_format):
        raise RuntimeError(f"memory format option is only supported by strided tensors, got {memory_format}")
    indices, values, _ = input._parts
    empty = SparseTensor(indices[:, :0], tg.zeros_like(values[:0], dtype=dtype, device=device), input.shape, True)
    return empty if layout in (None, sparse_coo) else empty.to_sparse(layout=layout)


@handler("sparse_mask")
def sparse_mask(self, mask):
    """The elements of a tensor at the places that a sparse one of the same size stores."""
    if not isinstance(mask, SparseTensor):
        raise TypeError(
            f"sparse_mask(): expected a sparse mask, got one of the layout {mask.layout}: to_sparse() first"
        )
    if mask.shape != self.shape:
        raise RuntimeError(f"sparse_mask(): self {list(self.shape)} and mask {list(mask.shape)} have to be of one size")
    return mask.with_values(_plain(self)[tuple(mask._parts[0].unbind(0))])
