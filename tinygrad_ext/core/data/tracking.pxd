"""Which objects the garbage collector knows."""
from cpython.object cimport PyObject

cdef extern from "tracking.h":
    ctypedef struct tgx_link:
        tgx_link *next          # NULL: the collector knows the object, or it is being freed
    void tgx_unlink(tgx_link *l) noexcept
    void tgx_link_into(tgx_link *ring, tgx_link *l) noexcept
    bint tgx_is_gc(object o) noexcept

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject *o) noexcept
    bint PyObject_GC_IsTracked(PyObject *o) noexcept

cdef int add_ring(tgx_link *ring, Py_ssize_t offset) except -1
cdef void track(PyObject *o, tgx_link *l) noexcept              # one object that nothing untracked owns
cdef void track_all() noexcept
