# cython: language_level=3
"""Finds a BLAS at the first product and calls it through function pointers.

Nothing is linked: the wheel stays small, and NumPy has brought an OpenBLAS with fast kernels in most installations
already. A library is taken when it has all eight functions; libraries differ in a prefix and a suffix of their
symbols, and the suffix 64_ means that their integers have 64 bits. The C below exists because the types of a call
differ by width; where no library was found, or a size does not fit its integers, it calls kernels/gemm.c.
"""
import glob
import importlib.util
import os
import sys

cimport cython
from libc.stdint cimport int64_t
from tinygrad_ext.core.parallel cimport attach_blas_threads, enter_blas, leave_blas

cdef extern from "dlfcn.h" nogil:
    ctypedef struct Dl_info:
        const char *dli_fname
    void *dlopen(const char *path, int flags)
    void *dlsym(void *handle, const char *symbol)
    int dlclose(void *handle)
    int dladdr(const void *address, Dl_info *info)
    int RTLD_NOW, RTLD_LOCAL

cdef extern from *:
    """
    #include <limits.h>
    #include "gemm.h"

    typedef struct { int wide; void *sgemm, *dgemm, *cgemm, *zgemm, *sgemv, *dgemv, *sdot, *ddot; } tgx_blas_table;
    static tgx_blas_table tgx_blas;
    static int tgx_blas_ready;

    static int tgx_blas_is_ready(void) { return __atomic_load_n(&tgx_blas_ready, __ATOMIC_ACQUIRE); }
    static void tgx_blas_set_ready(void) { __atomic_store_n(&tgx_blas_ready, 1, __ATOMIC_RELEASE); }

    static int tgx_fits_int(int64_t n) { return n >= INT_MIN && n <= INT_MAX; }
    /* Steps of op(X): the leading dimension separates rows in row-major order, columns in a transposed matrix. */
    static ptrdiff_t tgx_row(int order, int trans, int64_t ld) { return (order == 101) == (trans == 111) ? ld : 1; }
    static ptrdiff_t tgx_col(int order, int trans, int64_t ld) { return (order == 101) == (trans == 111) ? 1 : ld; }
    /* BLAS walks a vector with a negative step from its far end. */
    static ptrdiff_t tgx_start(int64_t n, int64_t step) { return step < 0 ? (1 - n) * step : 0; }

    #define TGX_CONJ_NONE(trans)
    #define TGX_CONJ(trans) , (trans) == 113
    #define TGX_GEMM(name, S, I, O, CAST, CONJ) \\
        static void tgx_call_##name(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, S alpha, I a, \\
                                    int64_t lda, I b, int64_t ldb, S beta, O c, int64_t ldc) { \\
            if (tgx_blas.wide) \\
                ((void (*)(int, int, int, int64_t, int64_t, int64_t, S, I, int64_t, I, int64_t, S, O, int64_t)) \\
                     tgx_blas.name)(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); \\
            else if (tgx_blas.name && tgx_fits_int(m | n | k | lda | ldb | ldc)) \\
                ((void (*)(int, int, int, int, int, int, S, I, int, I, int, S, O, int))tgx_blas.name)( \\
                    order, ta, tb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc); \\
            else \\
                tgx_##name(m, n, k, CAST alpha, CAST a, tgx_row(order, ta, lda), tgx_col(order, ta, lda) CONJ(ta), \\
                           CAST b, tgx_row(order, tb, ldb), tgx_col(order, tb, ldb) CONJ(tb), \\
                           CAST beta, c, tgx_row(order, 111, ldc), tgx_col(order, 111, ldc)); \\
        }
    TGX_GEMM(sgemm, float, const float *, float *, , TGX_CONJ_NONE)
    TGX_GEMM(dgemm, double, const double *, double *, , TGX_CONJ_NONE)
    TGX_GEMM(cgemm, const void *, const void *, void *, (const float *), TGX_CONJ)
    TGX_GEMM(zgemm, const void *, const void *, void *, (const double *), TGX_CONJ)

    #define TGX_GEMV(name, product, T) \\
        static void tgx_call_##name(int order, int trans, int64_t m, int64_t n, T alpha, const T *a, int64_t lda, \\
                                    const T *x, int64_t inc_x, T beta, T *y, int64_t inc_y) { \\
            int64_t rows = trans == 111 ? m : n, cols = trans == 111 ? n : m; \\
            if (tgx_blas.wide) \\
                ((void (*)(int, int, int64_t, int64_t, T, const T *, int64_t, const T *, int64_t, T, T *, int64_t)) \\
                     tgx_blas.name)(order, trans, m, n, alpha, a, lda, x, inc_x, beta, y, inc_y); \\
            else if (tgx_blas.name && tgx_fits_int(m | n | lda) && tgx_fits_int(inc_x) && tgx_fits_int(inc_y)) \\
                ((void (*)(int, int, int, int, T, const T *, int, const T *, int, T, T *, int))tgx_blas.name)( \\
                    order, trans, (int)m, (int)n, alpha, a, (int)lda, x, (int)inc_x, beta, y, (int)inc_y); \\
            else \\
                tgx_##product(rows, 1, cols, alpha, a, tgx_row(order, trans, lda), tgx_col(order, trans, lda), \\
                              x + tgx_start(cols, inc_x), inc_x, 1, beta, y + tgx_start(rows, inc_y), inc_y, 1); \\
        }
    TGX_GEMV(sgemv, sgemm, float)
    TGX_GEMV(dgemv, dgemm, double)

    #define TGX_DOT(name, T) \\
        static T tgx_call_##name(int64_t n, const T *x, int64_t inc_x, const T *y, int64_t inc_y) { \\
            if (tgx_blas.wide) \\
                return ((T (*)(int64_t, const T *, int64_t, const T *, int64_t))tgx_blas.name)(n, x, inc_x, y, \\
                                                                                               inc_y); \\
            if (tgx_blas.name && tgx_fits_int(n) && tgx_fits_int(inc_x) && tgx_fits_int(inc_y)) \\
                return ((T (*)(int, const T *, int, const T *, int))tgx_blas.name)((int)n, x, (int)inc_x, y, \\
                                                                                   (int)inc_y); \\
            return tgx_##name(n, x + tgx_start(n, inc_x), inc_x, y + tgx_start(n, inc_y), inc_y); \\
        }
    TGX_DOT(sdot, float)
    TGX_DOT(ddot, double)
    """
    ctypedef struct tgx_blas_table:
        int wide
        void *sgemm
        void *dgemm
        void *cgemm
        void *zgemm
        void *sgemv
        void *dgemv
        void *sdot
        void *ddot
    tgx_blas_table tgx_blas
    int tgx_blas_is_ready() nogil
    void tgx_blas_set_ready() nogil
    void tgx_call_sgemm(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                        int64_t, float, float *, int64_t) nogil
    void tgx_call_dgemm(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t, const double *,
                        int64_t, double, double *, int64_t) nogil
    void tgx_call_cgemm(int, int, int, int64_t, int64_t, int64_t, const void *, const void *, int64_t, const void *,
                        int64_t, const void *, void *, int64_t) nogil
    void tgx_call_zgemm(int, int, int, int64_t, int64_t, int64_t, const void *, const void *, int64_t, const void *,
                        int64_t, const void *, void *, int64_t) nogil
    void tgx_call_sgemv(int, int, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float,
                        float *, int64_t) nogil
    void tgx_call_dgemv(int, int, int64_t, int64_t, double, const double *, int64_t, const double *, int64_t, double,
                        double *, int64_t) nogil
    float tgx_call_sdot(int64_t, const float *, int64_t, const float *, int64_t) nogil
    double tgx_call_ddot(int64_t, const double *, int64_t, const double *, int64_t) nogil

ctypedef const char *(*text_fn)() noexcept nogil
ctypedef void (*set_fn)(int) noexcept nogil
ctypedef int (*get_fn)() noexcept nogil

cdef cython.pymutex _lock
cdef void *_handle = NULL
cdef bytes _prefix = b""
cdef bytes _suffix = b""


# ---- finding the library ----

def _package_folder(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # ValueError: a module put into sys.modules by hand
        return None
    return spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else None


def _candidates():
    """Return what to try, best first: NumPy's library (the process has it loaded), the package, the system's."""
    numpy, package = _package_folder("numpy"), _package_folder("scipy_openblas64")
    folders = []
    if numpy:
        folders += [os.path.join(os.path.dirname(numpy), "numpy.libs"), os.path.join(numpy, ".dylibs")]
    if package:
        folders.append(os.path.join(package, "lib"))
    found = [path for folder in folders for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*openblas*")))]
    names = ["libopenblas.so.0", "libopenblas.so", "libopenblas.dylib", "libblas.so.3", "libcblas.so.3"]
    beside_python = [os.path.join(sys.prefix, "lib", name) for name in names]
    return found + beside_python + names + ["/System/Library/Frameworks/Accelerate.framework/Accelerate"]


cdef void *_symbol(bytes name):
    cdef bytes symbol = _prefix + name + _suffix
    return dlsym(_handle, <const char *>symbol)


cdef bint _fill_table(tgx_blas_table *table):
    table.sgemm, table.dgemm = _symbol(b"cblas_sgemm"), _symbol(b"cblas_dgemm")
    table.cgemm, table.zgemm = _symbol(b"cblas_cgemm"), _symbol(b"cblas_zgemm")
    table.sgemv, table.dgemv = _symbol(b"cblas_sgemv"), _symbol(b"cblas_dgemv")
    table.sdot, table.ddot = _symbol(b"cblas_sdot"), _symbol(b"cblas_ddot")
    table.wide = _suffix == b"64_"
    return (table.sgemm and table.dgemm and table.cgemm and table.zgemm
            and table.sgemv and table.dgemv and table.sdot and table.ddot)


cdef bint _take(str path):
    """Load one library; false leaves nothing behind."""
    global _handle, _prefix, _suffix, tgx_blas
    cdef tgx_blas_table table
    cdef bytes encoded = os.fsencode(path)
    _handle = dlopen(<const char *>encoded, RTLD_NOW | RTLD_LOCAL)
    if not _handle:
        return False
    for _prefix in (b"scipy_", b""):
        for _suffix in (b"64_", b""):
            if _fill_table(&table):
                tgx_blas = table
                return True
    dlclose(_handle)
    _handle = NULL
    return False


cdef int _find() except -1:
    for path in [] if os.environ.get("TINYGRAD_EXT_BLAS") == "own" else _candidates():
        if _take(path):
            attach_blas_threads(<set_fn>_symbol(b"openblas_set_num_threads"),
                                <get_fn>_symbol(b"openblas_get_num_threads"))
            break
    tgx_blas_set_ready()
    return 0


cdef int ensure_blas() except -1 nogil:
    """Look for the library once; threads that come meanwhile wait."""
    if tgx_blas_is_ready():
        return 0
    with gil, _lock:
        if not tgx_blas_is_ready():
            _find()
    return 0


cdef bint have_blas() noexcept nogil:
    return tgx_blas_is_ready() and tgx_blas.sgemm != NULL


# ---- what was found ----

cdef object _text(bytes name):
    cdef void *function = _symbol(name) if _handle else NULL
    return (<text_fn>function)().decode() if function else None


def blas_info():
    """Return what computes matrix products: a dict, looked up now if no product has run yet.

    ``library`` is the path of the shared library, or None when the plain C products are used, which
    ``TINYGRAD_EXT_BLAS=own`` in the environment asks for; ``int_width`` the bits
    of its integers; ``config`` and ``core`` OpenBLAS's version and kernels, else None; ``threads`` its threads;
    ``coretype`` the value of ``OPENBLAS_CORETYPE``, which makes OpenBLAS use the kernels of another processor.

    >>> sorted(blas_info())
    ['config', 'core', 'coretype', 'int_width', 'library', 'threads']
    """
    cdef Dl_info where
    ensure_blas()
    library = None
    if have_blas() and dladdr(tgx_blas.sgemm, &where):
        library = os.path.realpath(os.fsdecode(where.dli_fname))
    return {"library": library, "int_width": 64 if tgx_blas.wide or not have_blas() else 32,
            "config": _text(b"openblas_get_config"), "core": _text(b"openblas_get_corename"),
            "threads": get_blas_threads(), "coretype": os.environ.get("OPENBLAS_CORETYPE")}


# ---- products ----

cdef void sgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                float beta, float *c, int64_t ldc) noexcept nogil:
    cdef int entered = enter_blas()
    tgx_call_sgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    leave_blas(entered)


cdef void dgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                double beta, double *c, int64_t ldc) noexcept nogil:
    cdef int entered = enter_blas()
    tgx_call_dgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    leave_blas(entered)


cdef void cgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                const void *beta, void *c, int64_t ldc) noexcept nogil:
    cdef int entered = enter_blas()
    tgx_call_cgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    leave_blas(entered)


cdef void zgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                const void *alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                const void *beta, void *c, int64_t ldc) noexcept nogil:
    cdef int entered = enter_blas()
    tgx_call_zgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    leave_blas(entered)


cdef void sgemv(int order, int trans, int64_t m, int64_t n, float alpha, const float *a, int64_t lda,
                const float *x, int64_t inc_x, float beta, float *y, int64_t inc_y) noexcept nogil:
    cdef int entered = enter_blas()
    tgx_call_sgemv(order, trans, m, n, alpha, a, lda, x, inc_x, beta, y, inc_y)
    leave_blas(entered)


cdef void dgemv(int order, int trans, int64_t m, int64_t n, double alpha, const double *a, int64_t lda,
                const double *x, int64_t inc_x, double beta, double *y, int64_t inc_y) noexcept nogil:
    cdef int entered = enter_blas()
    tgx_call_dgemv(order, trans, m, n, alpha, a, lda, x, inc_x, beta, y, inc_y)
    leave_blas(entered)


cdef float sdot(int64_t n, const float *x, int64_t inc_x, const float *y, int64_t inc_y) noexcept nogil:
    cdef int entered = enter_blas()
    cdef float result = tgx_call_sdot(n, x, inc_x, y, inc_y)
    leave_blas(entered)
    return result


cdef double ddot(int64_t n, const double *x, int64_t inc_x, const double *y, int64_t inc_y) noexcept nogil:
    cdef int entered = enter_blas()
    cdef double result = tgx_call_ddot(n, x, inc_x, y, inc_y)
    leave_blas(entered)
    return result
