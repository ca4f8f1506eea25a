"""Norms of vectors and matrices; slices that are not longer than wanted."""

import tinygrad_ext as tg
from tinygrad_ext.ops.folding import numpy_axis, unfold
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.halves import rounded_once
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import meta, wrapped

_INF = float("inf")

# ---- how they are computed, and derivatives ------------------------------------------------------------------------


def norm_back(grad, self, result, ord, dim, keepdim, dtype):
    """The subgradient at zero is zero."""
    self = self if dtype is None else self.to(dtype)
    grad, norm = unfold(grad, self.shape, dim, keepdim), unfold(result, self.shape, dim, keepdim)
    if ord == 0:
        return grad * self * 0
    direction = self.sgn() if self.dtype.is_complex else self.sign()
    if ord == 1:
        return grad * direction
    size = self.abs()
    if ord in (_INF, -_INF):
        chosen = size == norm
        return direction * chosen * (grad / chosen.sum(dim, keepdim=True))
    none = norm == 0
    if ord == 2:
        return self * (grad / norm.masked_fill(none, _INF))  # so that the second derivative is zero there too
    zero = self == 0
    # (size / norm) ** (ord - 1), kept away from 0 / 0 and from 0 ** a negative number
    return direction * ((size + zero) / (norm + none)) ** (ord - 1) * ~(zero | none) * grad


def _norm(self, p, dim, keepdim, dtype):
    if p == "nuc":
        dims = tuple(range(self.dim())) if dim is None else dim
        return _matrix_norm(self, "nuc", [dims] if isinstance(dims, int) else dims, keepdim, dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm(): order p='{p}' is not supported; p is a number, inf, -inf, 'fro' or 'nuc'")
    return tg.linalg.vector_norm(self, 2 if p is None or p == "fro" else p, dim, keepdim, dtype=dtype)


# order of a matrix norm -> whether the elements of a column are added up, or of a row; what chooses among the sums
_SUMS = {1: (True, "amax"), -1: (True, "amin"), _INF: (False, "amax"), -_INF: (False, "amin")}


def _matrix_norm(self, ord, dim, keepdim, dtype):
    _check_matrix(self, ord, dim, dtype)
    dims = [wrapped(d, self.dim()) for d in dim]
    if dims[0] == dims[1]:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    if ord == "fro":
        return tg.linalg.vector_norm(self, 2, dims, keepdim, dtype=dtype)
    if ord in (2, -2, "nuc"):
        return _of_singular_values(self if dtype is None else self.to(dtype), ord, dims, keepdim)
    columns, choose = _SUMS[ord]
    sums = tg.linalg.vector_norm(self, 1, dims[0] if columns else dims[1], True, dtype=dtype)
    if choose == "amax" and sums.numel() == 0:  # nothing to choose from: 0, as all norms of a matrix without elements
        choose = "sum"
    return getattr(sums, choose)(dims, keepdim)


def _of_singular_values(self, ord, dims, keepdim):
    values = tg.linalg.svdvals(self.movedim(dims, (-2, -1)))
    if ord == "nuc" or not values.shape[-1]:
        found = values.sum(-1)
    else:
        found = values.amax(-1) if ord == 2 else values.amin(-1)
    for dim in sorted(dims) if keepdim else ():
        found = found.unsqueeze(dim)
    return found


def _check_matrix(self, ord, dim, dtype):
    """Errors for what is no matrix of floating numbers, and for orders that are not computed."""
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {self.dtype}: convert it "
            "with .float()"
        )
    if dtype is not None:
        dtype = meta((), dtype).dtype  # of the types of Python too
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"linalg.matrix_norm: dtype should be floating point or complex, but got {dtype}")
    if self.dim() < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions. It has shape "
            f"{list(self.shape)}; the norm of a vector is linalg.vector_norm."
        )
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    if isinstance(ord, complex):
        raise RuntimeError(f"linalg.matrix_norm: Expected a non-complex scalar as the order of norm. Got {ord}")
    if ord not in ("fro", "nuc", 2, -2) and ord not in _SUMS:
        raise RuntimeError(
            f"linalg.matrix_norm: Order {ord} not supported. ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."
        )


def _any_norm(self, ord, dim, keepdim, dtype):
    rank = self.dim()
    if dim is not None:
        dim = [dim] if isinstance(dim, int) else list(dim)
        if len(dim) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim}; see linalg.vector_norm"
            )
    elif ord is not None and rank not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {rank}D; give dim, or "
            "call linalg.vector_norm."
        )
    if isinstance(ord, str) or (ord is not None and (rank if dim is None else len(dim)) == 2):
        return tg.linalg.matrix_norm(self, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return tg.linalg.vector_norm(self, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


# ---- samples and references ----------------------------------------------------------------------------------------

_ORDERS = (2, 1, 0, 3, 0.5, -1.5, _INF, -_INF)


def _vector_norms(make):
    for ord in _ORDERS:
        yield Sample(make(3, 4), ord)
        yield Sample(make(3, 5), ord, dim=-1, keepdim=True)
    for shape, dim in (((2, 3, 4), (0, 2)), ((), None), ((0, 3), None), ((0, 3), 0), ((2, 3), ()), ((), 0)):
        yield Sample(make(*shape), 2, dim)


def _norms(make):
    yield Sample(make(3, 4))
    for p in (*_ORDERS, "fro"):
        yield Sample(make(3, 5), p, 0)
    yield Sample(make(3, 4), p=1, dim=(0, 1), keepdim=True)
    yield Sample(make(3, 4), "fro", dim=(0, 1))
    yield Sample(make(3, 4), "nuc")


def _vector_norm_reference(x, ord=2, dim=None, keepdim=False, dtype=None):
    import numpy

    axis = numpy_axis(x, dim)
    if axis is None:
        axis = tuple(range(x.ndim))
    size = numpy.abs(x).astype(numpy.float64)
    if ord == _INF:
        return size.max(axis=axis, keepdims=keepdim)
    if ord == -_INF:
        return size.min(axis=axis, keepdims=keepdim)
    if ord == 0:
        return (size != 0).sum(axis=axis, keepdims=keepdim).astype(float)
    return (size**ord).sum(axis=axis, keepdims=keepdim) ** (1 / ord)


def _norm_reference(x, p="fro", dim=None, keepdim=False, dtype=None):
    if p == "nuc":
        return _matrix_norm_reference(x, p, (0, 1) if dim is None else dim, keepdim)
    return _vector_norm_reference(x, 2 if p == "fro" else p, dim, keepdim)


def _matrices(make, orders=(1, -1, _INF, -_INF, 2, -2)):
    for ord in orders:
        yield Sample(make(3, 4), ord)
        yield Sample(make(2, 3, 4), ord, (0, -1), True)
        yield Sample(make(2, 3, 4), ord, dim=(2, 1))
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        yield Sample(make(*shape), orders[0], (-2, -1))


def _frobenius(make):
    yield Sample(make(3, 4))
    yield from _matrices(make, ("fro",))
    yield Sample(make(3, 4), "nuc")
    yield Sample(make(2, 3, 4), "nuc", (2, 0), True)


def _either(make):
    for shape in ((3, 4), (5,), (2, 3, 4), ()):
        yield Sample(make(*shape))
    for ord in _ORDERS:
        yield Sample(make(5), ord)
        yield Sample(make(3, 5), ord, 0)
    yield from _matrices(make)


def _matrix_norm_reference(x, ord="fro", dim=(-2, -1), keepdim=False, dtype=None):
    import numpy

    if x.size == 0:
        return numpy.zeros([n for i, n in enumerate(x.shape) if i - x.ndim not in dim and i not in dim])
    return numpy.linalg.norm(x.astype(numpy.float64), ord, dim, keepdim)


def _any_norm_reference(x, ord=None, dim=None, keepdim=False, dtype=None):
    matrices = x.ndim == 2 if dim is None else isinstance(dim, tuple)
    if isinstance(ord, str) or (ord is not None and matrices):
        return _matrix_norm_reference(x, ord, (-2, -1) if dim is None else dim, keepdim)
    return _vector_norm_reference(x, 2 if ord is None else ord, dim, keepdim)


def _refused(name, error, text, shape, *args, dtype=None, **options):
    """A call of linalg.<name> that must raise, with ones, or with the numbers in a list; dtype by its name."""

    def call():
        x = tg.tensor(shape) if isinstance(shape, list) else tg.ones(shape)
        return getattr(tg.linalg, name)(x, *args, dtype=getattr(tg, dtype or "", None), **options)

    return call, error, "linalg." + text


# ---- records -------------------------------------------------------------------------------------------------------

op(
    "aten::vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    batch="dims",
    kernel="vector_norm",
    types="float complex",
    where="linalg",
    variants="function out",
    grad={"self": norm_back},
    jvp="reduce",
    samples=_vector_norms,
    reference=_vector_norm_reference,
    errors=[
        _refused("vector_norm", RuntimeError, "vector_norm: Expected a floating point", [1, 2]),
        _refused("vector_norm", RuntimeError, "vector_norm: Expected a non-complex scalar", (2,), 1j),
        _refused("vector_norm", RuntimeError, "vector_norm: dtype should be floating point", (2,), dtype="int64"),
        _refused("vector_norm", RuntimeError, "vector_norm: dtype should be real for real", (2,), dtype="complex64"),
        _refused("vector_norm", RuntimeError, "vector_norm: the dtype of the input (Float) should", (2,), dtype="half"),
    ],
    doc="(sum of |x| ** ord) ** (1 / ord) of all elements or along dim; the largest and smallest |x| for inf and -inf, "
    "the number of elements that are not zero for 0. RuntimeError for integers, and for inf or a negative ord without "
    "elements.",
)

op(
    'aten::norm(Tensor self, Any p="fro", int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
    compose=_norm,
    types="float",
    variants="function method out",
    samples=_norms,
    reference=_norm_reference,
    doc="Vector norm of order p, a number, inf, -inf, or 'fro' for 2, of all elements or along dim; 'nuc' is the sum "
    "of the singular values of a matrix.",
)

_MATRIX_DOC = (
    "Norm of the matrices in the two dimensions dim: 'fro' is the root of the sum of squares, 1 and -1 the largest and "
    "smallest sum of the magnitudes in a column, inf and -inf in a row, 2 and -2 the largest and smallest singular "
    "value, 'nuc' the sum of them. RuntimeError for other orders, integers and other counts of dimensions."
)
_ANY_DOC = (
    "Without ord linalg.vector_norm of order 2, of all elements or along dim. With ord linalg.matrix_norm for two "
    "dimensions (in dim, or of self) and for a word, else linalg.vector_norm. RuntimeError for more dimensions."
)

op(
    "aten::matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    compose=_matrix_norm,
    types="float",
    where="linalg",
    variants="function out",
    samples=_matrices,
    reference=_matrix_norm_reference,
    errors=[
        _refused("matrix_norm", RuntimeError, "matrix_norm: Order 3 not supported", (2, 2), 3),
        _refused("matrix_norm", RuntimeError, "matrix_norm: Expected a non-complex scalar", (2, 2), 1j),
        _refused("matrix_norm", RuntimeError, "matrix_norm: dims must be different", (2, 2), 1, (0, -2)),
        _refused("matrix_norm", RuntimeError, "matrix_norm: dim must be a 2-tuple", (2, 2), 1, (0,)),
    ],
    doc=_MATRIX_DOC,
)

op(
    'aten::matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, '
    "ScalarType? dtype=None) -> Tensor",
    compose=_matrix_norm,
    types="float",
    where="linalg",
    variants="function out",
    samples=_frobenius,
    reference=_matrix_norm_reference,
    errors=[
        _refused("matrix_norm", RuntimeError, "matrix_norm: Order inf not supported", (2, 2), "inf"),
        _refused("matrix_norm", RuntimeError, "matrix_norm: The input tensor A must have at least 2", (3,)),
        _refused("matrix_norm", RuntimeError, "matrix_norm: Expected a floating point", [[1, 2]]),
        _refused("matrix_norm", RuntimeError, "matrix_norm: dtype should be floating point", (2, 2), dtype="int64"),
    ],
    doc=_MATRIX_DOC,
)

op(
    "aten::norm.linalg(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    compose=_any_norm,
    types="float",
    where="linalg",
    variants="function out",
    samples=_either,
    reference=_any_norm_reference,
    errors=[
        _refused("norm", RuntimeError, "norm: If dim is not specified but ord is", (2, 2, 2), 1),
        _refused("norm", RuntimeError, "norm: If dim is specified, it must be of length 1 or 2", (2, 2), dim=()),
    ],
    doc=_ANY_DOC,
)

op(
    "aten::norm.linalg_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    compose=_any_norm,
    types="float",
    where="linalg",
    variants="function out",
    samples=lambda make: [Sample(make(3, 4), "fro"), Sample(make(2, 3, 4), "fro", (0, 2), True)],
    reference=_any_norm_reference,
    errors=[
        _refused("norm", RuntimeError, "matrix_norm: dim must be a 2-tuple", (2, 2), "fro", 0),
        _refused("norm", RuntimeError, "matrix_norm: The input tensor A must have at least 2", (3,), "fro"),
    ],
    doc=_ANY_DOC,
)

op(
    "aten::nuclear_norm(Tensor self, int[2]? dim=None, bool keepdim=False) -> Tensor",
    compose=lambda self, dim, keepdim: _norm(self, "nuc", dim, keepdim, None),
    older="self keepdim",
    types="float",
    variants="function out",
    samples=lambda make: [Sample(make(3, 4)), Sample(make(2, 3, 4), (0, 2), True)],
    reference=lambda x, dim=(0, 1), keepdim=False: _matrix_norm_reference(x, "nuc", dim, keepdim),
    doc="The sum of the singular values of the matrix in two dimensions.",
)

op(
    "aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    compose=lambda self, dim, keepdim: _norm(self, 2, dim if dim != [] else None, keepdim, None),
    types="float",
    variants="function out",
    samples=lambda make: [Sample(make(3, 4), 0), Sample(make(2, 3, 4), (0, 2), True)],
    reference=lambda x, dim, keepdim=False: _vector_norm_reference(x, 2, dim, keepdim),
    doc="The root of the sum of squares along dim.",
)


# ---- slices made shorter ------------------------------------------------------------------------------------------


@rounded_once
def _renorm(self, p, dim, maxnorm):
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported: p must be positive, got {p}")
    if self.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.dim()} dimensions")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dim = wrapped(dim, self.dim())
    norms = self.norm(p, [d for d in range(self.dim()) if d != dim], True)
    return self * fused.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


op(
    "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    compose=_renorm,
    variants="function method out inplace",
    types="float",
    samples=lambda make: [Sample(make(3, 4), 2, 0, 3.0), Sample(make(2, 3, 2), 1, 1, 5.0)],
    errors=[
        (lambda: zeros(3).renorm(2, 0, 1), RuntimeError, "input needs at least 2 dimensions"),
        (lambda: zeros(2, 3).renorm(2, 9, 1), IndexError, "Dimension out of range"),
    ],
    doc="Slices along a dimension, of which those whose p-norm exceeds maxnorm are made shorter to it.",
)
