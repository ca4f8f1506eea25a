# cython: language_level=3
"""Judges every geometry that comes from outside, and says what is wrong with it.

Arithmetic and messages stand in kernels/extent.h, which tells what was tried in their place. Who takes numbers from a file,
from another library or from a caller's hands calls `reach` with the bytes there are; nothing else decides whether a window
lies inside its memory. A lender that tells no size (DLPack, the buffer protocol) is believed as far as a memory can be large.
"""
from tinygrad_ext.core.data.types cimport TGX_MAX_DIMS

cdef extern from "Python.h":
    object PyNumber_Index(object o)

cdef extern from "extent.h" nogil:
    ctypedef enum tgx_verdict:
        TGX_FITS, TGX_NEGATIVE_SIZE, TGX_NEGATIVE_STRIDE, TGX_NEGATIVE_OFFSET, TGX_TOO_MANY, TGX_OUTSIDE
    tgx_verdict tgx_count(const int64_t *sizes, int rank, int64_t *count)
    tgx_verdict tgx_reach(const int64_t *sizes, const int64_t *strides, int rank, int64_t offset, int64_t itemsize,
                          int64_t room, int64_t *reach)
    void tgx_geometry_text(char *text, size_t room, tgx_verdict verdict, const int64_t *sizes, const int64_t *strides,
                           int rank, int64_t offset, int64_t nbytes, const char *what)

cdef extern from "tgx.h" nogil:
    enum:
        TGX_TEXT


cdef int64_t counted(const int64_t *sizes, int rank, str what) except -1:
    """Product of sizes; RuntimeError for negative sizes and for a product beyond 63 bits."""
    cdef int64_t n = 0
    cdef tgx_verdict verdict = tgx_count(sizes, rank, &n)
    if verdict != TGX_FITS:
        _refuse(verdict, sizes, NULL, rank, 0, 0, what)
    return n


cdef int64_t reach(const int64_t *sizes, const int64_t *strides, int rank, int64_t offset, int itemsize, int64_t room,
                   str what) except -1:
    """Bytes up to the end of the window (up to its offset without elements); strides of NULL are row-major.

    RuntimeError for numbers that are negative, that no 63 bits can add up, or that lead beyond `room` bytes.
    """
    cdef int64_t nbytes = 0
    cdef tgx_verdict verdict = tgx_reach(sizes, strides, rank, offset, itemsize, room, &nbytes)
    if verdict != TGX_FITS:
        _refuse(verdict, sizes, strides, rank, offset, room, what)
    return nbytes


cdef int _refuse(tgx_verdict verdict, const int64_t *sizes, const int64_t *strides, int rank, int64_t offset,
                 int64_t room, str what) except -1:
    cdef char[TGX_TEXT] text
    name = what.encode()
    tgx_geometry_text(text, TGX_TEXT, verdict, sizes, strides, rank, offset, room, name)
    raise RuntimeError((<bytes>text).decode())


cdef int read_numbers(object given, int64_t *out, str what, str name) except -1:
    """Fill out from a list or tuple of integers; how many there are.

    TypeError for anything else in it, RuntimeError for more than 64 of them and for what 64 bits cannot hold.
    """
    cdef int i, n
    if len(given) > TGX_MAX_DIMS:
        raise RuntimeError(f"{what}: too many (>{TGX_MAX_DIMS}) dims: '{name}' has {len(given)} numbers")
    n = len(given)
    for i in range(n):
        number = PyNumber_Index(given[i])
        try:
            out[i] = number
        except OverflowError:
            raise RuntimeError(f"{what}: Storage size calculation overflowed: '{name}' holds a number of "
                               f"{number.bit_length()} bits") from None
    return n
