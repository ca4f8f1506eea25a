"""The two ops that everything differentiable is made of; each is the derivative of the other.

sparse::matmul multiplies a sparse matrix by a dense one. sparse::sampled_matmul multiplies two dense ones and computes
only the entries of a pattern. A sparse matrix is three tensors as in SciPy's CSR format: values, indptr, indices.
"""

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext import ops
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.ops.shapes import meta

BLOCK = 1 << 15  # elements of each dense matrix that are copied at a time: they stay in the cache


# ---- kernels -------------------------------------------------------------------------------------------------------


def _matmul(values, indptr, indices, rows, columns, dense, transpose):
    _check("matmul", (rows if transpose else columns, "n"), values=values, dense=dense)
    matrix = _matrix("matmul", values.detach().numpy(), indptr, indices, rows, columns)
    product = (matrix.T if transpose else matrix) @ dense.detach().numpy()
    return tg.from_numpy(np.ascontiguousarray(product))


def _sampled(left, right, indptr, indices):
    _check("sampled_matmul", ("m", left.shape[-1]), left=left, right=right)
    pattern = _matrix("sampled_matmul", None, indptr, indices, left.shape[0], right.shape[0])
    rows = np.repeat(np.arange(left.shape[0]), np.diff(pattern.indptr))
    a, b = left.detach().numpy(), right.detach().numpy()
    out = np.empty(len(rows), a.dtype)
    entries = max(BLOCK // max(a.shape[1], 1), 1)
    for start in range(0, len(rows), entries):
        part = slice(start, start + entries)
        out[part] = np.einsum("nk,nk->n", a.take(rows[part], 0), b.take(pattern.indices[part], 0))
    return tg.from_numpy(out)


def _matrix(op, values, indptr, indices, rows, columns):
    """SciPy's matrix over the memory of the tensors. ValueError for indices that point outside of it."""
    from scipy import sparse

    indptr, indices = (_integers(op, name, t) for name, t in (("indptr", indptr), ("indices", indices)))
    values = np.zeros(len(indices), "i1") if values is None else values
    try:
        matrix = sparse.csr_array((values, indices, indptr), (rows, columns), copy=False)
        matrix.check_format(full_check=True)  # SciPy's loops check nothing
    except ValueError as error:
        raise ValueError(f"sparse::{op}: indptr and indices describe no {rows} x {columns} matrix: {error}") from None
    return matrix


def _integers(op, name, t):
    if t.dim() != 1 or t.dtype not in (tg.int32, tg.int64):
        raise RuntimeError(
            f"sparse::{op}: {name} must be a vector of int32 or int64, but is {t.dtype} of shape {list(t.shape)}"
        )
    return t.detach().numpy()


def _check(op, shape, **tensors):
    """The first tensor gives the dtype, the second must be a matrix of the shape."""
    (first, a), (second, b) = tensors.items()
    for name, t in tensors.items():
        if t.dtype not in (tg.float32, tg.float64):
            raise NotImplementedError(
                f"\"sparse::{op}\" not implemented for '{t.dtype}': {name} must be float32 or float64"
            )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"sparse::{op}: {first} is {a.dtype} and {second} is {b.dtype}; convert one, for example "
            f"array.astype('{str(b.dtype).rpartition('.')[2]}')"
        )
    if a.dim() != (1 if first == "values" else 2):
        raise RuntimeError(f"sparse::{op}: {first} has the wrong number of dimensions: its shape is {list(a.shape)}")
    if b.dim() != 2 or any(isinstance(s, int) and s != have for s, have in zip(shape, b.shape)):
        wanted = ", ".join(map(str, shape))
        raise RuntimeError(f"sparse::{op}: {second} must have the shape ({wanted}), but has {list(b.shape)}")


# ---- derivatives ---------------------------------------------------------------------------------------------------


def _by_values(grad, indptr, indices, dense, transpose):
    left, right = (dense, grad) if transpose else (grad, dense)
    return ops.sparse.sampled_matmul(left, right, indptr, indices)


def _by_dense(grad, values, indptr, indices, rows, columns, transpose):
    return ops.sparse.matmul(values, indptr, indices, rows, columns, grad, not transpose)


def _by_left(grad, left_shape, right, indptr, indices):
    return ops.sparse.matmul(grad, indptr, indices, left_shape[0], right.shape[0], right)


def _by_right(grad, left, right_shape, indptr, indices):
    return ops.sparse.matmul(grad, indptr, indices, left.shape[0], right_shape[0], left, True)


# ---- samples -------------------------------------------------------------------------------------------------------

_INDPTR, _INDICES = [0, 2, 2, 5], [0, 3, 0, 1, 2]  # 3 x 4, the second row empty


def _patterns(make):
    yield make.of(_INDPTR, tg.int32), make.of(_INDICES, tg.int32), 3, 4
    yield make.of([0, 0, 0], tg.int64), make.of([], tg.int64), 2, 3


def _matmul_samples(make):
    for indptr, indices, rows, columns in _patterns(make):
        yield Sample(make(len(indices)), indptr, indices, rows, columns, make(columns, 2))
        yield Sample(make(len(indices)), indptr, indices, rows, columns, make(rows, 3), True)


def _sampled_samples(make):
    for indptr, indices, rows, columns in _patterns(make):
        yield Sample(make(rows, 2), make(columns, 2), indptr, indices)


def _matmul_reference(values, indptr, indices, rows, columns, dense, transpose=False):
    matrix = np.zeros((rows, columns), values.dtype)
    for row in range(rows):
        for k in range(indptr[row], indptr[row + 1]):
            matrix[row, indices[k]] += values[k]
    return (matrix.T if transpose else matrix) @ dense


def _sampled_reference(left, right, indptr, indices):
    product = left @ right.T
    rows = range(len(left))
    entries = [product[row, indices[k]] for row in rows for k in range(indptr[row], indptr[row + 1])]
    return np.array(entries, left.dtype)


def _refused(values=5, indptr=_INDPTR, indices=_INDICES, dense=(4, 2), dtype=None):
    def call():
        return ops.sparse.matmul(
            tg.ones(values, dtype=dtype), tg.tensor(indptr), tg.tensor(indices), 3, 4, tg.ones(dense)
        )

    return call


_ERRORS = [
    (_refused(indices=[0, 3, 0, 1, 4]), ValueError, "describe no 3 x 4 matrix"),
    (_refused(indices=[0, -1, 0, 1, 2]), ValueError, "describe no 3 x 4 matrix"),
    (_refused(indptr=[0, 9, 2, 5]), ValueError, "describe no 3 x 4 matrix"),
    (_refused(values=4), ValueError, "describe no 3 x 4 matrix"),
    (_refused(indptr=[0.0, 2, 2, 5]), RuntimeError, "indptr must be a vector of int32 or int64"),
    (_refused(dense=(3, 2)), RuntimeError, "dense must have the shape (4, n), but has [3, 2]"),
    (_refused(dtype=tg.float64), RuntimeError, "array.astype('float32')"),
    (_refused(dtype=tg.int64), NotImplementedError, "not implemented for 'torch.int64'"),
]


def register_all(register):
    """Add the ops of this file."""
    register(
        "sparse::matmul(Tensor values, Tensor indptr, Tensor indices, int rows, int columns, Tensor dense, "
        "bool transpose=False) -> Tensor",
        kernel=_matmul,
        shape=lambda values, indptr, indices, rows, columns, dense, transpose: meta(
            (columns if transpose else rows, dense.shape[1]), dense.dtype
        ),
        grad={"values": _by_values, "dense": _by_dense, "indptr": "none", "indices": "none"},
        types="float",
        reference=_matmul_reference,
        samples=_matmul_samples,
        errors=_ERRORS,
        doc="""Product of a sparse matrix (rows, columns), or of its transpose, and a dense one.

        values (entries), indptr (rows + 1) and indices (entries) are those of SciPy's CSR format. dense is
        (columns, n), or (rows, n) with transpose. float32 or float64, the same for both. ValueError for indices that
        point outside, RuntimeError for other shapes and for two dtypes.""",
    )
    register(
        "sparse::sampled_matmul(Tensor left, Tensor right, Tensor indptr, Tensor indices) -> Tensor",
        kernel=_sampled,
        shape=lambda left, right, indptr, indices: meta(indices.shape, left.dtype),
        grad={"left": _by_left, "right": _by_right, "indptr": "none", "indices": "none"},
        types="float",
        reference=_sampled_reference,
        samples=_sampled_samples,
        doc="""The entries of left @ right.T at the places of a pattern, as a vector.

        left is (rows, n), right (columns, n); indptr and indices are those of SciPy's CSR format.""",
    )
