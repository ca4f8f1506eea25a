"""What each served function of tinygrad_ext does with sparse operands, written in ops.

Sparse means a SciPy array here as much as a SparseTensor: the first becomes the second for the call. A result that is
zero outside of the pattern is a SparseTensor, any other a Tensor.
"""

import numpy as np

import tinygrad_ext as tg
from tgx_sparse.tensor import Pattern, SparseTensor
from tinygrad_ext import nn, ops

_served = {}  # function object -> implementation
_names = []


def handle(func, types, args, kwargs):
    """`__torch_function__` of sparse operands.

    A call of SciPy's arrays that is not served goes on as without this package; one of a SparseTensor, which nobody
    else knows, is a TypeError.
    """
    serve = _served.get(func)
    if serve is None:
        if all(issubclass(t, SparseTensor) for t in types):
            raise TypeError(_not_served(func))
        return NotImplemented
    return serve(*map(_known, args), **{name: _known(value) for name, value in kwargs.items()})


SparseTensor._handle = staticmethod(handle)


def _known(value):
    """A SparseTensor for a SciPy array, an array of NumPy as a tensor, anything else as it is."""
    from scipy.sparse import issparse

    if issparse(value):
        return SparseTensor.viewing(value)
    return tg.from_numpy(value) if isinstance(value, np.ndarray) else value


def _not_served(func):
    name = getattr(func, "__name__", func)
    return (
        f"{name}(): takes no sparse arrays. tgx-sparse serves {', '.join(sorted(_names))}; for anything else make the "
        "operand dense first: array.toarray() of SciPy, .to_dense() of a SparseTensor"
    )


def serves(*names, reflected=None):
    """Decorator: the function carries out tinygrad_ext's function of these names, its methods and `nn.functional`.

    reflected: the method for `array - tensor`, which has the tensor first.
    """

    def mark(fn):
        _names.append(names[0])
        for place in (tg, tg.Tensor, nn.functional, ops.aten):
            for name in names:
                if getattr(place, name, None) is not None:
                    _served[getattr(place, name)] = fn
        if reflected is not None:
            _served[getattr(tg.Tensor, reflected)] = lambda tensor, array: fn(array, tensor)
        return fn

    return mark


def _is(value):
    return isinstance(value, SparseTensor)


def _refuse(op, self, other, why):
    kinds = " and ".join("sparse" if _is(v) else type(v).__name__ for v in (self, other))
    raise TypeError(f"{op}() of {kinds}: {why}; make the sparse operand dense first: .toarray() or .to_dense()")


def _require_tensor(op, self, other, value):
    if not isinstance(value, tg.Tensor):
        _refuse(op, self, other, "one operand is sparse and the other must be a Tensor")


# ---- products ------------------------------------------------------------------------------------------------------


def _product(matrix, dense, transpose=False):
    """matrix @ dense, or matrix.T @ dense."""
    p = matrix.pattern
    return ops.sparse.matmul(matrix.values, p.indptr, p.indices, *p.shape, dense, transpose)


@serves("matmul")
def matmul(input, other):
    """Product with a dense matrix, vector or batch of matrices on either side."""
    if _is(input) and _is(other):
        _refuse("matmul", input, other, "products of two sparse matrices have no gradient yet")
    dense = other if _is(input) else input
    _require_tensor("matmul", input, other, dense)
    inner, size = (input.shape[1], dense.shape[-2:][0]) if _is(input) else (other.shape[0], dense.shape[-1])
    if dense.dim() == 0 or inner != size:
        raise RuntimeError(
            f"matmul(): cannot multiply input {list(input.shape)} by other {list(other.shape)}: "
            f"{size} must equal {inner}"
        )
    if not _is(input):  # x A = (A' x')'
        rows = dense.flatten(0, -2) if dense.dim() > 1 else dense.unsqueeze(0)
        return _product(other, rows.t(), True).t().reshape(*dense.shape[:-1], other.shape[1])
    if dense.dim() <= 2:
        return _product(input, dense) if dense.dim() == 2 else _product(input, dense.unsqueeze(1)).squeeze(1)
    columns = dense.movedim(-2, 0)  # (size, ..., n): one product for the whole batch
    return _product(input, columns.flatten(1)).reshape(input.shape[0], *columns.shape[1:]).movedim(0, -2)


@serves("mm")
def mm(input, mat2):
    """Product of two matrices."""
    if len(input.shape) != 2 or len(mat2.shape) != 2:
        raise RuntimeError(f"mm(): both operands must be matrices, but have {list(input.shape)} and {list(mat2.shape)}")
    return matmul(input, mat2)


@serves("mv")
def mv(input, vec):
    """Product of a sparse matrix and a vector."""
    if not _is(input) or _is(vec) or vec.dim() != 1:
        _refuse("mv", input, vec, "the matrix is sparse and the vector is not")
    return matmul(input, vec)


@serves("linear")
def linear(input, weight, bias=None):
    """input @ weight.T + bias, so that nn.Linear takes sparse features."""
    product = matmul(input, weight.t())
    return product if bias is None else product + bias


# ---- element by element --------------------------------------------------------------------------------------------


def _there(op, matrix, other):
    """The elements of a dense tensor at the places of a pattern."""
    try:
        other = other.expand(matrix.shape)
    except RuntimeError:
        raise RuntimeError(
            f"{op}(): a tensor of shape {list(other.shape)} does not broadcast to the sparse {list(matrix.shape)}"
        ) from None
    return other[matrix.pattern.rows, matrix.pattern.columns]


@serves("mul", "multiply")
def mul(input, other):
    """Product element by element, with a number, a tensor that broadcasts or a sparse matrix; sparse."""
    if not _is(input):
        input, other = other, input
    if _is(other):
        return _common(input, other)
    factor = _there("mul", input, other) if isinstance(other, tg.Tensor) and other.dim() else other
    return SparseTensor(input.pattern, input.values * factor)


@serves("div", "divide", "true_divide")
def div(input, other, *, rounding_mode=None):
    """A sparse matrix by a number or a tensor that broadcasts; sparse, so that 0 / 0 is 0 where nothing is stored."""
    if not _is(input) or _is(other) or rounding_mode is not None:
        _refuse("div", input, other, "only a sparse matrix by a Tensor or a number is served, without rounding")
    divisor = _there("div", input, other) if isinstance(other, tg.Tensor) and other.dim() else other
    return SparseTensor(input.pattern, input.values / divisor)


@serves("add")
def add(input, other, *, alpha=1):
    """Sum with a tensor of the same shape (dense), or with a sparse matrix (sparse)."""
    if _is(input) and _is(other):
        return _joined(input, other, alpha)
    dense = other if _is(input) else input
    _require_tensor("add", input, other, dense)
    return tg.add(*(v.to_dense() if _is(v) else v for v in (input, other)), alpha=alpha)


@serves("sub", "subtract", reflected="__rsub__")
def sub(input, other, *, alpha=1):
    """Difference; as add."""
    return add(input, other, alpha=-alpha)


def _common(a, b):
    """Product of two patterns: the entries that both have."""
    _same_shape("mul", a, b)
    if a.pattern.same_as(b.pattern):
        return SparseTensor(a.pattern, a.values * b.values)
    flat, in_a, in_b = np.intersect1d(a.pattern.flat.numpy(), b.pattern.flat.numpy(), True, True)
    values = a.values[tg.from_numpy(in_a)] * b.values[tg.from_numpy(in_b)]
    return SparseTensor(Pattern.at(flat, a.shape), values)


def _joined(a, b, alpha):
    """Sum of two patterns: the entries that either has."""
    _same_shape("add", a, b)
    if a.pattern.same_as(b.pattern):
        return SparseTensor(a.pattern, tg.add(a.values, b.values, alpha=alpha))
    places = [a.pattern.flat.numpy(), b.pattern.flat.numpy()]
    flat = np.union1d(*places)
    values = a.values.new_zeros(len(flat), dtype=tg.result_type(a.values, b.values))
    for term, place in ((a.values, places[0]), (b.values * alpha, places[1])):
        values = values.index_add(0, tg.from_numpy(np.searchsorted(flat, place)), term.to(values.dtype))
    return SparseTensor(Pattern.at(flat, a.shape), values)


def _same_shape(op, a, b):
    if a.shape != b.shape:
        raise RuntimeError(f"{op}(): sparse matrices do not broadcast: {list(a.shape)} and {list(b.shape)}")


def _of_values(name):
    """A function that is 0 at 0 changes the values and nothing else."""

    @serves(name)
    def call(input):
        return SparseTensor(input.pattern, getattr(tg, name)(input.values))


for _name in ("neg", "abs", "relu", "sqrt", "square", "sin", "tanh", "sign", "expm1", "log1p"):
    _of_values(_name)


# ---- reductions and transposes -------------------------------------------------------------------------------------


@serves("sum")
def total(input, dim=None, keepdim=False, *, dtype=None):
    """Sum of all entries, or along one dimension; dense."""
    values = input.values if dtype is None else input.values.to(dtype)
    dims = {0, 1} if dim is None else {_dim(d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    if dims == {0, 1}:
        return values.sum().reshape(1, 1) if keepdim else values.sum()
    (gone,) = dims
    left = input.shape[1 - gone]
    place = input.pattern.columns if gone == 0 else input.pattern.rows
    sums = values.new_zeros(left).index_add(0, place, values)
    return sums.unsqueeze(gone) if keepdim else sums


@serves("mean")
def mean(input, dim=None, keepdim=False, *, dtype=None):
    """Mean of all elements, zeros included, or along one dimension; dense."""
    sums = total(input, dim, keepdim, dtype=dtype)
    rows, columns = input.shape
    return sums / (rows * columns / max(sums.numel(), 1))


@serves("t")
def flipped(input):
    """The transpose."""
    return input.t()


@serves("transpose")
def transpose(input, dim0, dim1):
    """The transpose, or the matrix itself for the same dimension twice."""
    return input if _dim(dim0) == _dim(dim1) else input.t()


def _dim(dim):
    if not -2 <= dim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [-2, 1], but got {dim})")
    return dim % 2
