# cython: language_level=3
"""Finds a BLAS at the first product, for kernels/blas_library.c to call.

Nothing is linked: the wheel stays small, and NumPy has brought an OpenBLAS with fast kernels in most installations
already. A library is taken when it has all eight functions; libraries differ in a prefix and a suffix of their
symbols, and the suffix 64_ means that their integers have 64 bits. Where none is found, and with TINYGRAD_EXT_BLAS=own,
kernels/gemm.c computes.
"""
import importlib.util
import os
import sys

cimport cython
from tinygrad_ext.core.loops.parallel cimport attach_blas_threads, enter_blas, leave_blas

cdef extern from "dlfcn.h" nogil:
    ctypedef struct Dl_info:
        const char *dli_fname
    void *dlopen(const char *path, int flags)
    void *dlsym(void *handle, const char *symbol)
    int dlclose(void *handle)
    int dladdr(const void *address, Dl_info *info)
    int RTLD_NOW, RTLD_LOCAL

cdef extern from "<stdio.h>" nogil:
    int snprintf(char *to, size_t size, const char *format, ...)

cdef extern from "blas_library.h" nogil:
    ctypedef struct tgx_blas_library:
        int wide
        void *sgemm
        void *dgemm
        void *cgemm
        void *zgemm
        void *sgemv
        void *dgemv
        void *sdot
        void *ddot
        void *(*symbol)(const char *name) noexcept nogil
        int (*enter)() noexcept nogil
        void (*leave)(int) noexcept nogil
    void tgx_blas_use(const tgx_blas_library *library)
    const tgx_blas *tgx_blas_in_use()

ctypedef const char *(*text_fn)() noexcept nogil
ctypedef void (*set_fn)(int) noexcept nogil
ctypedef int (*get_fn)() noexcept nogil

cdef cython.pymutex _lock
cdef void *_handle = NULL
cdef tgx_blas_library _library
cdef bytes _prefix = b""
cdef bytes _suffix = b""
cdef const char *_of_prefix = b""
cdef const char *_of_suffix = b""


# ---- finding the library ----

def _package_folder(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # ValueError: a module put into sys.modules by hand
        return None
    return spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else None


def _candidates():
    """Return what to try, best first: NumPy's library (the process has it loaded), the package, the system's."""
    import glob     # lazy: it compiles patterns

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


cdef void *_routine(const char *name) noexcept nogil:
    """A routine of Fortran's, which is called from threads that do not hold Python."""
    cdef char symbol[64]
    snprintf(symbol, sizeof(symbol), "%s%s%s", _of_prefix, name, _of_suffix)
    return dlsym(_handle, symbol)


cdef bint _fill(tgx_blas_library *table):
    global _of_prefix, _of_suffix
    _of_prefix, _of_suffix, table.symbol = _prefix, _suffix, _routine
    table.sgemm, table.dgemm = _symbol(b"cblas_sgemm"), _symbol(b"cblas_dgemm")
    table.cgemm, table.zgemm = _symbol(b"cblas_cgemm"), _symbol(b"cblas_zgemm")
    table.sgemv, table.dgemv = _symbol(b"cblas_sgemv"), _symbol(b"cblas_dgemv")
    table.sdot, table.ddot = _symbol(b"cblas_sdot"), _symbol(b"cblas_ddot")
    table.wide, table.enter, table.leave = _suffix == b"64_", enter_blas, leave_blas
    return (table.sgemm and table.dgemm and table.cgemm and table.zgemm
            and table.sgemv and table.dgemv and table.sdot and table.ddot)


cdef bint _take(str path):
    """Load one library; false leaves nothing behind."""
    global _handle, _prefix, _suffix
    cdef bytes encoded = os.fsencode(path)
    _handle = dlopen(<const char *>encoded, RTLD_NOW | RTLD_LOCAL)
    if not _handle:
        return False
    for _prefix in (b"scipy_", b""):
        for _suffix in (b"64_", b""):
            if _fill(&_library):
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
    tgx_blas_use(&_library if _handle else NULL)
    return 0


cdef const tgx_blas *find_blas() except NULL nogil:
    """Look for the library once; threads that come meanwhile wait."""
    if tgx_blas_in_use() == NULL:
        with gil, _lock:
            if tgx_blas_in_use() == NULL:
                _find()
    return tgx_blas_in_use()


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
    find_blas()
    library = None
    if _handle and dladdr(_library.sgemm, &where):
        library = os.path.realpath(os.fsdecode(where.dli_fname))
    return {"library": library, "int_width": 64 if _library.wide or not _handle else 32,
            "config": _text(b"openblas_get_config"), "core": _text(b"openblas_get_corename"),
            "threads": get_blas_threads(), "coretype": os.environ.get("OPENBLAS_CORETYPE")}
