"""Functions at the top of the package that are no ops: they change a tensor's shape or history, or make one of ops."""

import warnings as _warnings

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.call.op_tables import functions as _functions
from tinygrad_ext.core.call.overridable import overridable as _overridable
from tinygrad_ext.core.data import dtype as _dtypes

__all__ = ["detach_", "empty_permuted", "is_signed", "is_storage", "lobpcg", "lu", "range", "resize_as_"]


@_overridable
def is_signed(input):
    """Whether the tensor's dtype holds numbers below zero."""
    return input.dtype.is_signed


@_boundary
def is_storage(obj):
    """Whether obj is an UntypedStorage or a TypedStorage."""
    # lazy: few programs ask
    from tinygrad_ext.tensor.copying import UntypedStorage
    from tinygrad_ext.tensor.typed_storage import TypedStorage

    return isinstance(obj, (UntypedStorage, TypedStorage))


@_overridable
def detach_(input):
    """Cut the tensor off its history, in place; returns it."""
    return input.detach_()


@_overridable
def resize_as_(input, the_template, *, memory_format=None):
    """Give the tensor the shape of another, in place, row-major over its memory; new elements are not set."""
    return input.resize_as_(the_template, memory_format=memory_format)


@_overridable
def range(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Numbers from start to end, which is one of them, step apart. Deprecated: arange leaves the end out.

    Raises RuntimeError for a step of zero, for a bound that is not finite and where the step leads away from end,
    TypeError without an end.
    """
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end", the last number')
    _warnings.warn(
        "torch.range is deprecated and will be removed in a future release: its end is one of its numbers, unlike that "
        "of Python's range; use torch.arange",
        stacklevel=2,
    )
    if (end - start) * 0 != 0:
        raise RuntimeError(f"unsupported range: {start} -> {end}; range() takes finite bounds")
    dtype = (out.dtype if out is not None else _dtypes.get_default_dtype()) if dtype is None else dtype
    if not dtype.is_floating_point:
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise RuntimeError("step must be nonzero: range() would never reach its end")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: range({start}, {end}, {step})")
    wide = _dtypes.by_name["float64" if dtype.is_floating_point else "int64"]
    places = _functions["arange"](int((end - start) / step) + 1, dtype=wide, layout=layout, device=device)
    found = (places * step + start).to(dtype)
    if out is None:
        return found.requires_grad_(requires_grad)
    return (out if out.numel() == found.numel() else out.resize_(found.shape)).copy_(found.reshape(out.shape))


@_overridable
def empty_permuted(size, physical_layout, **options):
    """A tensor whose dimensions lie in memory in the order of physical_layout, and whose elements are not set.

    Args:
        size: its sizes.
        physical_layout: the dimensions from the one that moves slowest in memory to the one that moves fastest.
        options: dtype, device, requires_grad and the others of empty_strided.

    Raises RuntimeError where physical_layout does not name each dimension once.

        >>> import tinygrad_ext as tg
        >>> tg.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
        (12, 1, 3)
    """
    rank = len(size)
    if len(physical_layout) != rank:
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{rank} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    strides, step = [None] * rank, 1
    for dim in reversed(physical_layout):
        if not 0 <= dim < rank:
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {rank - 1}, but got {dim}): empty_permuted "
                "takes no dimension counted from the end"
            )
        if strides[dim] is not None:
            raise RuntimeError(f"Duplicate dim not allowed: empty_permuted got {dim} twice in {list(physical_layout)}")
        strides[dim], step = step, step * size[dim]
    return _functions["empty_strided"](size, strides, **options)


@_overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """LU factors and pivots of matrices (..., m, n), as linalg.lu_factor gives them, which is to be preferred.

    get_infos: give a third tensor, 0 for each matrix or the number of the first zero on U's diagonal; without it
    such a matrix is refused.

    Raises RuntimeError for fewer than 2 dimensions, without pivot, and for an out of another number of tensors.
    """
    found = tuple(_functions["linalg.lu_factor_ex"](A, pivot=pivot, check_errors=not get_infos))
    found = found if get_infos else found[:2]
    if out is None:
        return found
    if len(out) != len(found):
        raise TypeError(f"lu(): expected a tuple of {len(found)} tensors for out, got one of {len(out)}")
    for target, value in zip(out, found):
        target.resize_as_(value).copy_(value)
    return out


@_overridable
def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """(k eigenvalues, eigenvectors as columns) of A x = e B x, the largest first, or the smallest first.

    All are found by `linalg.eigh` and k are taken, so that what steers an iteration is accepted and changes nothing:
    X (but for its number of columns), n, iK, niter, tol, method, tracker and those of ortho. There are derivatives.

    Args:
        A: symmetric, (..., m, m); one of a sparse layout is made plain.
        k: how many; the columns of X, or 1, if left out.
        B: symmetric and positive definite, (..., m, m); the identity if left out.
        largest: False for the smallest.

    Raises ValueError for k below 1 or above m, linalg.LinAlgError for a B that is not positive definite.
    """
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"lobpcg(): A must be square matrices (..., m, m), got {list(A.shape)}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    if not 1 <= k <= A.shape[-1]:
        raise ValueError(f"lobpcg(): k must be from 1 to {A.shape[-1]}, the rows of A, got {k}")
    A = (A + A.mH) / 2
    if B is not None:
        L = _functions["linalg.cholesky"](B)
        solve = _functions["linalg.solve_triangular"]
        A = solve(L, solve(L, A, upper=False).mH, upper=False)
    values, vectors = _functions["linalg.eigh"](A)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    values, vectors = values[..., :k], vectors[..., :k]
    return values, vectors if B is None else solve(L.mH, vectors, upper=True)
