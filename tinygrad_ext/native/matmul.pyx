# cython: language_level=3
"""Kernels of the matrix products: matmul and its special ranks, linear, and the add-and-multiply family.

All end in `_run`, which fills a Product from two operands seen as batches of matrices. Operands that BLAS cannot
read in place are copied; half precision is computed in float32.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.copy cimport cast, contiguous, copy_into
from tinygrad_ext.core.dispatch cimport as_scalar, register_kernel
from tinygrad_ext.core.dtype cimport dtype_of
from tinygrad_ext.core.outputs cimport prepare_out
from tinygrad_ext.core.storage cimport Storage
from tinygrad_ext.core.tensor cimport (
    CONTIGUOUS, READONLY, Tensor, dtype_title, empty, may_overlap, shape_text, view,
)
from tinygrad_ext.core.types cimport (
    ITEMSIZE, TGX_BOOL, TGX_F32, TGX_MAX_DIMS, int64_t, is_half, is_inexact, is_integral, tgx_scalar,
)
from tinygrad_ext.native.product cimport Product, begin_product, blas_takes, run_product


# ---- operands as batches of matrices -------------------------------------------------------------------------------

cdef struct Shape:                  # of the result
    int ndim
    int64_t[TGX_MAX_DIMS] sizes


cdef inline int64_t _rows(Tensor a) noexcept:
    return a.sizes[a.rank - 2] if a.rank > 1 else 1


cdef inline int64_t _cols(Tensor b) noexcept:
    return b.sizes[b.rank - 1] if b.rank > 1 else 1


cdef inline int64_t _depth(Tensor b) noexcept:
    return b.sizes[b.rank - 2] if b.rank > 1 else b.sizes[0]


cdef Tensor _readable(Tensor t):
    """t, or a copy of it when BLAS cannot read its matrices in place."""
    cdef int64_t *st = t.strides
    cdef int r = t.rank
    cdef bint fine
    if r == 1:
        fine = st[0] > 0 or t.sizes[0] == 1
    else:
        fine = blas_takes(t.sizes[r - 2], t.sizes[r - 1], st[r - 2], st[r - 1])
    return t if fine else contiguous(t)


cdef bint _same_dtype(Tensor a, Tensor b, str op) except -1:
    if a.tid != b.tid:
        hint = f". {op}() got {dtype_of(a.tid)} and {dtype_of(b.tid)}: convert one, for example with .to(other.dtype)."
        if op in ("bmm", "baddbmm"):
            raise RuntimeError(f"expected scalar type {dtype_title(a.tid)} but found {dtype_title(b.tid)}" + hint)
        if op in ("mv", "addmv"):
            raise RuntimeError(f"{op} input tensors must have the same dtype, but got {dtype_title(a.tid)} and "
                               f"{dtype_title(b.tid)}" + hint)
        if op == "dot":
            raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {dtype_title(a.tid)} and "
                               f"{dtype_title(b.tid)}" + hint)
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_cpp_name(a.tid)} != {_cpp_name(b.tid)}" + hint)
    return True


_CPP = ["bool", "unsigned char", "signed char", "short", "int", "long long", "c10::Half", "c10::BFloat16", "float", "double",
        "c10::complex<float>", "c10::complex<double>"]


cdef str _cpp_name(int tid):
    return _CPP[tid]


cdef object _bad_depth(Tensor a, Tensor b, str op):
    """The error for sizes that do not fit each other."""
    hint = f". {op}() got {shape_text(a)} and {shape_text(b)}: the last size of the first must equal the second's size in " \
           f"dimension {-2 if b.rank > 1 else -1}."
    if b.rank > 1 and a.sizes[a.rank - 1] == b.sizes[b.rank - 1]:
        hint += " Rows of weights are multiplied with other.mT."
    if a.rank == 1 and b.rank == 1:
        return RuntimeError(f"inconsistent tensor size, expected tensor {shape_text(a)} and src {shape_text(b)} to have the same "
                            f"number of elements, but got {a.count} and {b.count} elements respectively" + hint)
    if a.rank == 2 and b.rank == 1:
        return RuntimeError(f"size mismatch, got input ({a.sizes[0]}), mat ({a.sizes[0]}x{a.sizes[1]}), vec ({b.sizes[0]})" + hint)
    if a.rank > 2 and b.rank > 2:
        return RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{b.sizes[0]}, "
                            f"{a.sizes[a.rank - 1]}] but got: [{b.sizes[0]}, {_depth(b)}]" + hint)
    rows = a.count // max(a.sizes[a.rank - 1], 1) if a.rank > 2 else _rows(a)
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.sizes[a.rank - 1]} and "
                        f"{_depth(b)}x{_cols(b)})" + hint)


cdef int _batch_shape(Tensor a, Tensor b, Shape *s) except -1:
    """Broadcast the batch dimensions."""
    cdef int na = max(a.rank - 2, 0), nb = max(b.rank - 2, 0), n = max(na, nb), i
    cdef int64_t x, y
    if n + 2 > TGX_MAX_DIMS:
        raise RuntimeError(f"tensor has too many (>{TGX_MAX_DIMS}) dims: {n + 2}")
    for i in range(n):
        x = a.sizes[i - (n - na)] if i >= n - na else 1
        y = b.sizes[i - (n - nb)] if i >= n - nb else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}: "
                               f"matmul() got {shape_text(a)} and {shape_text(b)}; the dimensions before the last two broadcast")
        s.sizes[i] = y if x == 1 else x
    s.ndim = n
    return n


cdef int _result_shape(Tensor a, Tensor b, Shape *s, str op) except -1:
    if a.rank == 0 or b.rank == 0:
        raise RuntimeError(f"both arguments to {op} need to be at least 1D, but they are {a.rank}D and {b.rank}D. "
                           "Use mul() for a product with a number.")
    if a.sizes[a.rank - 1] != _depth(b):
        raise _bad_depth(a, b, op)
    _batch_shape(a, b, s)
    if a.rank > 1:
        s.sizes[s.ndim] = _rows(a)
        s.ndim += 1
    if b.rank > 1:
        s.sizes[s.ndim] = _cols(b)
        s.ndim += 1
    return 0


cdef bint _rows_collapse(Tensor a) noexcept:
    """Whether the batch and row dimensions of a are one evenly spaced run of rows."""
    cdef int i
    for i in range(a.rank - 2):
        if a.sizes[i] != 1 and a.strides[i] != a.strides[i + 1] * a.sizes[i + 1]:
            return False
    return True


cdef int _steps(Tensor t, int ndim, const int64_t *sizes, int64_t *step) noexcept:
    """Steps in bytes over the batch dimensions; 0 where t is repeated."""
    cdef int i, k, shift = ndim - max(t.rank - 2, 0)
    for i in range(ndim):
        k = i - shift
        step[i] = t.strides[k] * ITEMSIZE[t.tid] if k >= 0 and t.sizes[k] != 1 else 0
    return 0


cdef int _run(Tensor a, Tensor b, Tensor c, tgx_scalar alpha, tgx_scalar beta) except -1:
    """c = alpha a b + beta c. Shapes are checked; c is readable by BLAS and shares no memory with a and b."""
    cdef Product p
    cdef Storage _a_memory, _b_memory, _c_memory    # stay while other threads run, which may give the tensors other memory
    cdef int i
    if c.device_id != 0:
        return 0
    a, b = _readable(a), _readable(b) if is_inexact(c.tid) else contiguous(b)
    _a_memory, _b_memory, _c_memory = a.storage, b.storage, c.storage
    begin_product(&p, c.tid)
    p.alpha, p.beta = alpha, beta
    p.a, p.b, p.c = a.data, b.data, c.data
    p.s.m, p.s.n, p.s.k = _rows(a), _cols(b), a.sizes[a.rank - 1]
    p.s.a_col = a.strides[a.rank - 1]
    p.s.a_row = a.strides[a.rank - 2] if a.rank > 1 else p.s.k
    p.s.b_row = b.strides[b.rank - 2] if b.rank > 1 else b.strides[0]
    p.s.b_col = b.strides[b.rank - 1] if b.rank > 1 else 1
    i = c.rank
    if b.rank > 1:
        i -= 1
        p.s.c_col = c.strides[i]
    else:
        p.s.c_col = 1
    if a.rank > 1:
        i -= 1
        p.s.c_row = c.strides[i]
    else:
        p.s.c_row = p.s.n * p.s.c_col
    if i and b.rank <= 2 and c.bits & CONTIGUOUS and _rows_collapse(a):
        for i in range(a.rank - 2):
            p.s.m *= a.sizes[i]
        for i in range(a.rank - 2, -1, -1):         # a size of 1 has no meaningful stride
            if a.sizes[i] != 1:
                p.s.a_row = a.strides[i]
                break
        p.s.c_row = p.s.n
    elif i:
        p.ndim = i
        for i in range(p.ndim):
            p.sizes[i] = c.sizes[i]
            p.batches *= c.sizes[i]
            p.c_step[i] = c.strides[i] * ITEMSIZE[c.tid]
        _steps(a, p.ndim, p.sizes, p.a_step)
        _steps(b, p.ndim, p.sizes, p.b_step)
    return run_product(&p)


# ---- results -------------------------------------------------------------------------------------------------------

cdef tgx_scalar _number(double v) noexcept:
    cdef tgx_scalar s
    s.f, s.im, s.i, s.given = v, 0, <int64_t>v, 1
    return s


cdef tgx_scalar ONE = _number(1)
cdef tgx_scalar NONE = _number(0)


cdef bint _direct(Tensor out, int tid, Tensor a, Tensor b):
    """Whether a product can be written straight into out."""
    cdef int r = out.rank
    if out.tid != tid or out.storage is a.storage or out.storage is b.storage:
        return False
    if out.bits & CONTIGUOUS or r < 2:
        return out.bits & CONTIGUOUS != 0
    return blas_takes(out.sizes[r - 2], out.sizes[r - 1], out.strides[r - 2], out.strides[r - 1]) and not may_overlap(out)


cdef int _deliver(Tensor out, Tensor result, str op) except -1:
    if out.bits & READONLY:
        raise RuntimeError(f"{op}(): the tensor to write to is read-only: its memory was lent by another library that does not "
                           "allow writing. Clone it first.")
    if may_overlap(out):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                           "location. Please clone() the tensor before performing the operation.")
    return copy_into(out, result)


cdef bint _has_work(Tensor a, Shape *s) noexcept:
    cdef int i
    for i in range(s.ndim):
        if s.sizes[i] == 0:
            return False
    return a.sizes[a.rank - 1] != 0


cdef bint _has_shape(Tensor t, Shape *s) noexcept:
    cdef int i
    if t.rank != s.ndim:
        return False
    for i in range(s.ndim):
        if t.sizes[i] != s.sizes[i]:
            return False
    return True


cdef Tensor _into(Tensor a, Tensor b, Tensor start, tgx_scalar alpha, tgx_scalar beta, Shape *s, object out, str op):
    """alpha a b + beta start, in `out` when it is given; start broadcasts to the result and may be None."""
    cdef Tensor c
    cdef int tid = a.tid, computed = TGX_F32 if is_half(tid) else tid
    cdef bint keep = start is not None and (beta.f != 0 or beta.im != 0 or (is_integral(tid) and beta.i != 0))
    if (a.device_id != b.device_id or (start is not None and start.device_id != a.device_id)
            or (out is not None and (<Tensor>out).device_id != a.device_id)):
        raise RuntimeError(f"Expected all tensors to be on the same device, but {op}() got tensors on cpu and on meta")
    if tid == TGX_BOOL and _has_work(a, s):
        raise NotImplementedError(f"\"addmm_impl_cpu_\" not implemented for 'Bool': {op}() does not take bool; convert first, "
                                  "for example with .float() or .long()")
    if out is not None and out is start and not _has_shape(start, s):
        raise RuntimeError(f"output with shape {shape_text(start)} doesn't match the broadcast shape "
                           f"{[s.sizes[i] for i in range(s.ndim)]}: {op}_() writes into self, which must have the product's shape")
    if out is not None:
        prepare_out(<Tensor>out, s.sizes, s.ndim, tid)
        if computed == tid and not (<Tensor>out).bits & READONLY and _direct(<Tensor>out, tid, a, b):
            c = <Tensor>out
            if keep and c is not start:
                copy_into(c, start)
            _run(a, b, c, alpha, beta if keep else NONE)
            return c
    c = empty(s.sizes, s.ndim, computed, a.device_id or b.device_id)
    if keep:
        copy_into(c, start)
    if computed != tid:
        a, b = cast(a, computed), cast(b, computed)
    _run(a, b, c, alpha, beta if keep else NONE)
    if out is not None:
        _deliver(<Tensor>out, cast(c, tid), op)
        return <Tensor>out
    return cast(c, tid)


cdef Tensor multiply(Tensor a, Tensor b, Tensor bias, str op):
    cdef Shape s
    _same_dtype(a, b, op)
    _result_shape(a, b, &s, op)
    if bias is not None:
        _check_start(bias, b, &s, op)
    return _into(a, b, bias, ONE, ONE, &s, None, op)


cdef object _product(PyObject **args, str op):
    cdef Shape s
    cdef Tensor a = <Tensor><object>args[0], b = <Tensor><object>args[1]
    _same_dtype(a, b, op)
    _result_shape(a, b, &s, op)
    return _into(a, b, None, ONE, NONE, &s, <object>args[2], op)


# ---- kernels -------------------------------------------------------------------------------------------------------

cdef int _expect(Tensor t, int rank, str op, str name) except -1:
    """PyTorch's wording for a tensor of the wrong rank."""
    if t.rank == rank:
        return 0
    what = ("a vector", "a matrix", "a 3D tensor")[rank - 1]
    raise RuntimeError(f"{op}: {name} must be {what}: expected {rank} dimension{'s' if rank > 1 else ''}, got shape {shape_text(t)}. "
                       "matmul() takes other ranks and broadcasts.")


cdef object k_matmul(PyObject **args):
    return _product(args, "matmul")


cdef object k_mm(PyObject **args):
    _expect(<Tensor><object>args[0], 2, "mm", "self")
    _expect(<Tensor><object>args[1], 2, "mm", "mat2")
    return _product(args, "mm")


cdef object k_mv(PyObject **args):
    cdef Tensor a = <Tensor><object>args[0], b = <Tensor><object>args[1]
    if a.rank != 2 or b.rank != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.rank}, {b.rank}: mv() multiplies a matrix, here "
                           f"{shape_text(a)}, by a vector, here {shape_text(b)}")
    return _product(args, "mv")


cdef object k_dot(PyObject **args):
    cdef Tensor a = <Tensor><object>args[0], b = <Tensor><object>args[1]
    if a.rank != 1 or b.rank != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.rank}D and {b.rank}D tensors: dot() takes two vectors; "
                           "use matmul() or inner() for other ranks")
    return _product(args, "dot")


cdef int _check_batches(Tensor a, Tensor b, str op) except -1:
    _expect(a, 3, op, "batch1")
    _expect(b, 3, op, "batch2")
    if a.sizes[0] != b.sizes[0] or a.sizes[2] != b.sizes[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{a.sizes[0]}, {a.sizes[2]}] but got: "
                           f"[{b.sizes[0]}, {b.sizes[1]}]. {op}() got {shape_text(a)} and {shape_text(b)}; matmul() broadcasts "
                           "batches.")
    return 0


cdef object k_bmm(PyObject **args):
    _check_batches(<Tensor><object>args[0], <Tensor><object>args[1], "bmm")
    return _product(args, "bmm")


cdef object k_linear(PyObject **args):
    """linear(input, weight, bias): weight (out, in) is read transposed, the bias is where the sum starts."""
    cdef Tensor x = <Tensor><object>args[0], w = <Tensor><object>args[1]
    cdef Tensor bias = None if args[2] == <PyObject *>None else <Tensor><object>args[2]
    cdef int64_t[2] sizes
    cdef int64_t[2] strides
    if w.rank == 2:
        sizes[0], sizes[1], strides[0], strides[1] = w.sizes[1], w.sizes[0], w.strides[1], w.strides[0]
        w = view(w, sizes, strides, 2, 0)
    elif w.rank != 1:
        raise RuntimeError(f"linear(): weight must have shape (out_features, in_features) or (in_features,), got {shape_text(w)}")
    elif bias is not None:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor: linear() takes a bias only with a weight of shape "
                           f"(out_features, in_features), here weight is {shape_text(w)}")
    return multiply(x, w, bias, "linear")


cdef object _add_product(PyObject **args, str op):
    """beta self + alpha (a @ b) of addmm, addmv and baddbmm: (self, a, b, beta, alpha, out)."""
    cdef Shape s
    cdef Tensor start = <Tensor><object>args[0], a = <Tensor><object>args[1], b = <Tensor><object>args[2]
    cdef tgx_scalar beta = as_scalar(<object>args[3]), alpha = as_scalar(<object>args[4])
    _same_dtype(a, b, op)
    _result_shape(a, b, &s, op)
    _check_start(start, b, &s, op)
    return _into(a, b, start, alpha, beta, &s, <object>args[5], op)


cdef int _check_start(Tensor start, Tensor b, Shape *s, str op) except -1:
    """What is added must have the product's dtype and expand to its shape."""
    cdef int i, shift = s.ndim - start.rank
    if start.tid != b.tid:
        if op == "baddbmm":
            raise RuntimeError(f"Input dtypes must be the same, got: input {_cpp_name(start.tid)}, batch1: {_cpp_name(b.tid)}, "
                               f"batch2: {_cpp_name(b.tid)}")
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {dtype_title(start.tid)} and {dtype_title(b.tid)}: "
                           f"{op}() needs one dtype for all its tensors")
    for i in range(start.rank - 1, -1, -1):
        if shift < 0 or (start.sizes[i] != s.sizes[i + shift] and start.sizes[i] != 1):
            raise RuntimeError(f"The expanded size of the tensor ({s.sizes[i + shift] if shift >= 0 else 1}) must match the existing "
                               f"size ({start.sizes[i]}) at non-singleton dimension {max(i + shift, 0)}.  Target sizes: "
                               f"{[s.sizes[k] for k in range(s.ndim)]}.  Tensor sizes: {shape_text(start)}: what {op}() adds must "
                               "expand to the shape of the product")
    return 0


cdef object k_addmm(PyObject **args):
    _expect(<Tensor><object>args[1], 2, "addmm", "mat1")
    _expect(<Tensor><object>args[2], 2, "addmm", "mat2")
    return _add_product(args, "addmm")


cdef object k_addmv(PyObject **args):
    cdef Tensor a = <Tensor><object>args[1], b = <Tensor><object>args[2]
    if a.rank != 2 or b.rank != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {(<Tensor><object>args[0]).rank}, {a.rank}, {b.rank}: addmv() "
                           "takes self (n,), mat (n, m), vec (m,)")
    return _add_product(args, "addmv")


cdef object k_baddbmm(PyObject **args):
    _check_batches(<Tensor><object>args[1], <Tensor><object>args[2], "baddbmm")
    return _add_product(args, "baddbmm")


register_kernel("matmul", k_matmul)
register_kernel("mm", k_mm)
register_kernel("mv", k_mv)
register_kernel("dot", k_dot)
register_kernel("bmm", k_bmm)
register_kernel("linear", k_linear)
register_kernel("addmm", k_addmm)
register_kernel("addmv", k_addmv)
register_kernel("baddbmm", k_baddbmm)
