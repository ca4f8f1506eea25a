# cython: language_level=3
"""Kernels whose elements follow from their position: arange, linspace, eye, index pairs of triangles.

A step is multiplied, not added up, in double (in int64 for integer ranges), and rounded once to the dtype.
"""
from cpython.object cimport PyObject
from libc.math cimport ceil, isfinite
from tinygrad_ext.core.copy cimport copy_into, zero
from tinygrad_ext.core.dispatch cimport as_int, as_scalar, register_kernel
from tinygrad_ext.core.dtype cimport default_id
from tinygrad_ext.core.tensor cimport CONTIGUOUS, Tensor, checked_numel, dtype_title, empty, write_scalar
from tinygrad_ext.core.types cimport (
    ITEMSIZE, TGX_BOOL, TGX_F32, TGX_F64, TGX_I64, int64_t, is_complex, is_float, is_integer, is_native_float,
    tgx_scalar,
)
from tinygrad_ext.native.create cimport Options, finished, options, shaped

cdef extern from "ranges.h" nogil:
    void tgx_range_f32(float *out, int64_t n, double start, double step)
    void tgx_range_f64(double *out, int64_t n, double start, double step)


cdef Tensor _row(int64_t n, int dtype, Options *o, PyObject *out):
    return shaped(&n, 1, dtype, o, out)


cdef Tensor _finish_row(Tensor t, Tensor row, Options *o):
    """Hand over the values: `row` is t itself, or a contiguous stand-in for a strided `out` or another dtype."""
    if t is not row:
        copy_into(t, row)
    return finished(t, o)


# ---- arange --------------------------------------------------------------------------------------------------------

cdef int _whole(object value) noexcept:
    return isinstance(value, int)


cdef object _number(PyObject *o):
    """A Python number from a Scalar argument."""
    value = <object>o
    if isinstance(value, (int, float)):
        return value
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, complex):
        raise RuntimeError(f"arange: complex bounds have no order, got {value}; use real numbers")
    return value


cdef int _fill_integers(Tensor t, int64_t start, int64_t step) noexcept nogil:
    cdef int64_t i
    cdef int64_t *p = <int64_t *>t.data
    for i in range(t.count):
        p[i] = <int64_t>(<unsigned long long>start + <unsigned long long>i * <unsigned long long>step)
    return 0


cdef void _fill_floats(Tensor t, double start, double step) noexcept nogil:
    if t.tid == TGX_F32:
        tgx_range_f32(<float *>t.data, t.count, start, step)
    else:
        tgx_range_f64(<double *>t.data, t.count, start, step)


cdef object _arange(object start, object end, object step, Options *o, PyObject *out):
    cdef bint whole = _whole(start) and _whole(end) and _whole(step)
    cdef Tensor t, row
    cdef int dtype = o.dtype
    cdef int64_t n
    if dtype < 0:
        dtype = TGX_I64 if whole else default_id()
        if out != NULL and out != <PyObject *>None:
            dtype = (<Tensor><object>out).tid
    if dtype == TGX_BOOL or is_complex(dtype):
        raise NotImplementedError(f'"arange" not implemented for \'{dtype_title(dtype)}\': use a number dtype and '
                                  f'convert')
    n = _count(start, end, step, dtype == TGX_I64)
    t = _row(n, dtype, o, out)
    if t.device_id != 0 or n == 0:
        return finished(t, o)
    if is_float(dtype):
        row = (t if is_native_float(dtype) and t.bits & CONTIGUOUS
               else empty(&n, 1, TGX_F32 if dtype == TGX_F32 else TGX_F64))
        _fill_floats(row, float(start), float(step))
    else:
        row = t if dtype == TGX_I64 and t.bits & CONTIGUOUS else empty(&n, 1, TGX_I64)
        _fill_integers(row, int(start), int(step))
    return _finish_row(t, row, o)


cdef int64_t _count(object start, object end, object step, bint integer) except -1:
    """Elements of a range; RuntimeError for a zero step, infinite or contradicting bounds."""
    cdef double size
    if not (isfinite(<double>start) and isfinite(<double>end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}; arange needs finite bounds")
    if integer:
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise RuntimeError("step must be nonzero: arange would never reach its end")
    if step != step or (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: arange got start {start}, end "
                           f"{end}, "
                           f"step {step}; exchange the bounds, or negate the step")
    if integer:
        count = -((start - end) // step)
        if count > 0x7fffffffffffffff:
            raise RuntimeError(f"invalid size, possible overflow? arange({start}, {end}, {step}) has {count} elements")
        return count
    size = ceil((<double>end - <double>start) / <double>step)
    if not 0 <= size <= 9.2e18:
        raise RuntimeError(f"invalid size, possible overflow? arange({start}, {end}, {step}) has {size} elements")
    return <int64_t>size


cdef object k_arange(PyObject **a):
    cdef Options o = options(a + 1)
    return _arange(0, _number(a[0]), 1, &o, a[6])


cdef object k_arange_start(PyObject **a):
    cdef Options o = options(a + 2)
    return _arange(_number(a[0]), _number(a[1]), 1, &o, a[7])


cdef object k_arange_step(PyObject **a):
    cdef Options o = options(a + 3)
    return _arange(_number(a[0]), _number(a[1]), _number(a[2]), &o, a[8])


# ---- linspace ------------------------------------------------------------------------------------------------------

cdef int _fill_line(Tensor t, double start, double end) noexcept nogil:
    """From both ends to the middle, so that the last element is `end` itself."""
    cdef int64_t i, n = t.count
    cdef double step = (end - start) / <double>(n - 1) if n > 1 else 0
    cdef double *p = <double *>t.data
    cdef float *single = <float *>t.data
    cdef float first = <float>start, last = <float>end, single_step
    if t.tid == TGX_F32:
        single_step = (last - first) / <float>(n - 1) if n > 1 else 0
        for i in range(n):
            if i < n // 2 or n == 1:
                single[i] = first + single_step * <float>i
            else:
                single[i] = last - single_step * <float>(n - 1 - i)
        return 0
    for i in range(n):
        p[i] = start + step * <double>i if i < n // 2 or n == 1 else end - step * <double>(n - 1 - i)
    return 0


cdef object k_linspace(PyObject **a):
    """linspace(start, end, steps)."""
    cdef Options o = options(a + 3)
    cdef int64_t n = as_int(a[2])
    cdef tgx_scalar start = as_scalar(<object>a[0]), end = as_scalar(<object>a[1])
    cdef Tensor t, row
    if n < 0:
        raise RuntimeError(f"number of steps must be non-negative: linspace got steps={n}")
    if start.im != 0 or end.im != 0:
        raise NotImplementedError('"linspace" not implemented for complex bounds: join two real ranges with complex()')
    t = _row(n, default_id(), &o, a[8])
    if t.tid == TGX_BOOL or is_complex(t.tid):
        raise NotImplementedError(f'"linspace" not implemented for \'{dtype_title(t.tid)}\': use a number dtype and '
                                  f'convert')
    if t.device_id != 0:
        return finished(t, &o)
    row = t if is_native_float(t.tid) and t.bits & CONTIGUOUS else empty(&n, 1,
                                                                              TGX_F32 if t.tid == TGX_F32 else TGX_F64)
    if is_integer(t.tid):
        _fill_line(row, <double>start.i, <double>end.i)
    else:
        _fill_line(row, start.f, end.f)
    return _finish_row(t, row, &o)


# ---- matrices ------------------------------------------------------------------------------------------------------

cdef object _eye(int64_t n, int64_t m, Options *o, PyObject *out):
    cdef int64_t[2] shape
    cdef Tensor t
    cdef int64_t i, step
    if n < 0 or m < 0:
        raise RuntimeError(f"{'n' if n < 0 else 'm'} must be greater or equal to 0, got {n if n < 0 else m}: "
                           "eye takes numbers of rows and columns")
    shape[0], shape[1] = n, m
    t = shaped(shape, 2, default_id(), o, out)
    if t.device_id != 0:
        return finished(t, o)
    zero(t)
    step = (t.strides[0] + t.strides[1]) * ITEMSIZE[t.tid]
    for i in range(min(n, m)):
        write_scalar(t.data + i * step, t.tid, 1.0, 0.0, 1)
    return finished(t, o)


cdef object k_eye(PyObject **a):
    cdef Options o = options(a + 1)
    return _eye(as_int(a[0]), as_int(a[0]), &o, a[6])


cdef object k_eye_m(PyObject **a):
    cdef Options o = options(a + 2)
    return _eye(as_int(a[0]), as_int(a[1]), &o, a[7])


cdef Tensor _triangle(PyObject **a, bint lower):
    """Row and column numbers of the elements on, below or above a diagonal, row by row: int64 of 2 x count."""
    cdef int64_t rows = as_int(a[0]), columns = as_int(a[1]), offset = as_int(a[2])
    cdef int64_t r, c, k = 0, first, last, start, stop
    cdef int64_t[2] shape
    cdef Tensor t
    cdef int64_t *p
    if rows < 0 or columns < 0:
        raise RuntimeError(f"{'row' if rows < 0 else 'col'} must be non-negative, got {rows if rows < 0 else columns}")
    shape[0], shape[1] = rows, columns
    if checked_numel(shape, 2, "triangle indices") == 0:
        rows = 0
    offset = min(max(offset, -rows), columns)
    shape[0], shape[1] = 2, 0
    start = max(-offset, 0) if lower else 0                 # rows before have no element, nor have those from `stop` on
    stop = rows if lower else max(min(rows, columns - offset), 0)
    shape[1] = _triangle_count(start, stop, columns, offset, lower)
    if shape[1] < 0:
        raise MemoryError(f"cannot allocate the index pairs of a triangle of {rows} x {columns}; use a smaller one")
    t = empty(shape, 2, TGX_I64)
    p = <int64_t *>t.data
    for r in range(start, stop):
        _ends(r, columns, offset, lower, &first, &last)
        for c in range(first, last):
            p[k], p[k + shape[1]] = r, c
            k += 1
    return t


cdef int64_t _triangle_count(int64_t start, int64_t stop, int64_t columns, int64_t offset, bint lower) noexcept:
    """Elements in rows [start, stop): some full rows and a ramp of rows that differ by one; -1 for more than 2**42."""
    cdef int64_t mid = min(max(columns - offset - 1 if lower else -offset, start), stop)
    cdef int64_t top = start if lower else mid, end = mid if lower else stop, whole = (stop - start) - (end - top)
    cdef int64_t first, last, ends = 0
    if end > top:
        _ends(top, columns, offset, lower, &first, &last)
        ends = last - first
        _ends(end - 1, columns, offset, lower, &first, &last)
        ends += last - first
    if <double>whole * columns + 0.5 * (end - top) * <double>ends > <double>(<int64_t>1 << 42):
        return -1
    return whole * columns + (end - top) * ends // 2


cdef void _ends(int64_t r, int64_t columns, int64_t offset, bint lower, int64_t *first, int64_t *last) noexcept:
    """Columns [first, last) of row r that belong to the triangle."""
    cdef int64_t edge = min(max(r + offset + (1 if lower else 0), 0), columns)
    first[0] = 0 if lower else edge
    last[0] = edge if lower else columns


cdef object _triangle_as(PyObject **a, bint lower):
    cdef Options o = options(a + 3)
    cdef Tensor t = _triangle(a, lower), out
    if (o.dtype < 0 or o.dtype == TGX_I64) and o.device <= 0:
        return t
    out = empty(t.sizes, 2, o.dtype if o.dtype >= 0 else TGX_I64, o.device if o.device > 0 else 0)
    copy_into(out, t)
    return finished(out, &o)


cdef object k_tril_indices(PyObject **a):
    return _triangle_as(a, True)


cdef object k_triu_indices(PyObject **a):
    return _triangle_as(a, False)


register_kernel("arange", k_arange)
register_kernel("arange_start", k_arange_start)
register_kernel("arange_step", k_arange_step)
register_kernel("linspace", k_linspace)
register_kernel("eye", k_eye)
register_kernel("eye_m", k_eye_m)
register_kernel("tril_indices", k_tril_indices)
register_kernel("triu_indices", k_triu_indices)
