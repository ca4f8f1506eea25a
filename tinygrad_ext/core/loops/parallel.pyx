# cython: language_level=3
"""The process's one thread pool, for cimport, and set_num_threads / get_num_threads.

kernels/parallel.c is compiled into this module only: a second copy would be a second pool.
"""
import os
import warnings

cdef extern from "parallel.h" nogil:
    int tgx_parallel_for(range_fn fn, void *ctx, ptrdiff_t n, ptrdiff_t grain)
    int tgx_in_parallel()
    int tgx_mark_region(int inside)
    int tgx_get_num_threads()
    void tgx_set_num_threads(int n)
    void tgx_attach_blas_threads(void (*set_threads)(int) noexcept nogil, int (*get_threads)() noexcept nogil)
    int tgx_get_blas_threads()
    void tgx_set_blas_threads(int n)
    int tgx_enter_blas()
    void tgx_leave_blas(int entered)

cdef extern from "limits.h":
    int INT_MAX

cdef extern from "unistd.h" nogil:
    long sysconf(int)
    int _SC_NPROCESSORS_CONF

processors = sysconf(_SC_NPROCESSORS_CONF)


cdef int parallel_for(range_fn fn, void *ctx, ptrdiff_t n, ptrdiff_t grain) noexcept nogil:
    return tgx_parallel_for(fn, ctx, n, grain)


cdef int mark_region(int inside) noexcept nogil:
    return tgx_mark_region(inside)


cdef bint in_parallel() noexcept nogil:
    return tgx_in_parallel()


cdef int num_threads() noexcept nogil:
    return tgx_get_num_threads()


cdef int count_processors() noexcept nogil:
    return processors


cdef void attach_blas_threads(void (*set_threads)(int) noexcept nogil,
                              int (*get_threads)() noexcept nogil) noexcept nogil:
    tgx_attach_blas_threads(set_threads, get_threads)


cdef int enter_blas() noexcept nogil:
    return tgx_enter_blas()


cdef void leave_blas(int entered) noexcept nogil:
    tgx_leave_blas(entered)


cdef void set_blas_threads(int n) noexcept nogil:
    tgx_set_blas_threads(n)


cdef int get_blas_threads() noexcept nogil:
    return tgx_get_blas_threads()


def get_num_threads():
    """Return the number of threads an operation may use, the calling one included.

    At first ``TINYGRAD_EXT_NUM_THREADS`` or ``OMP_NUM_THREADS`` from the environment, else the number of cores
    this process may run on.

    >>> get_num_threads() >= 1
    True
    """
    return tgx_get_num_threads()


def set_num_threads(n):
    """Use ``n`` threads from now on, in operations and in the BLAS library.

    Raises TypeError if ``n`` is not an integer, RuntimeError if it is below 1, ValueError beyond a C int.

    >>> before = get_num_threads()
    >>> set_num_threads(1); get_num_threads()
    1
    >>> set_num_threads(before)
    """
    if isinstance(n, bool) or not hasattr(type(n), "__index__"):
        raise TypeError(f"set_num_threads expects an int, but got {type(n).__name__}; "
                        "pass the number of threads as a whole number")
    n = n.__index__()
    if n < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, but got {n}; "
                           "pass 1 to run everything in the calling thread")
    if n > INT_MAX:
        raise ValueError(f"set_num_threads expects an integer up to {INT_MAX}, but got {n}; "
                         "pass at most the number of cores")
    tgx_set_num_threads(n)


def _warn_about_environment():
    text = os.environ.get("TINYGRAD_EXT_NUM_THREADS") or "1"
    first = text.split(",")[0].lstrip()
    if not first.isdecimal() or not 1 <= int(first) <= INT_MAX:
        warnings.warn(f"TINYGRAD_EXT_NUM_THREADS expects a positive integer, but is {text!r}; "
                      "it is ignored, set it to a number of threads", RuntimeWarning, stacklevel=2)


_warn_about_environment()
