# cython: language_level=3
"""Which tensors and nodes the garbage collector knows: those from which something that is not ours can be reached.

Tensors, nodes and memory own one another from newer to older, so among themselves they form no circle, and reference
counts alone free them. A circle needs something else that is hung on one of them: a hook, an attribute, a packed value,
an instance of a subclass. As long as nothing of the kind can be reached from an object, the collector need not visit it;
a graph of a million nodes cost three times as much while it did.

Two rules keep that true. Who links an object to another that the collector knows makes it known too. And when
something is hung on an object that was unknown so far, all objects become known (`track_all`): who owns an object is
written down nowhere, and its consumers may be older than the hook. Each object is made known at most once for each time that
it was found harmless, so this costs no more than to track all from the start. What is used again later and holds nothing
by then, such as a leaf, is taken out again when the next node is built on it (`settle`).

Objects that the collector does not know hang in rings of our own, linked through the objects. Rejected: flushing only
what is newer than the hooked object (tensors get links after they were made); looking for what is hung at the start of a
collection (`gc.callbacks` is a list that anybody may empty); the collector's own links (their form is private).
"""
from cpython.object cimport PyObject

cdef extern from "Python.h":
    void PyObject_GC_Track(PyObject *o) noexcept

cdef struct Ring:
    tgx_link *head
    Py_ssize_t offset           # of the link in the objects

cdef Ring[4] _rings
cdef int _nrings = 0


cdef int add_ring(tgx_link *ring, Py_ssize_t offset) except -1:
    """Objects of a layout may start untracked, linked into this ring."""
    global _nrings
    if _nrings == 4:
        raise RuntimeError("there is room for four rings of untracked objects")
    _rings[_nrings].head, _rings[_nrings].offset = ring, offset
    _nrings += 1
    return 0


cdef void track(PyObject *o, tgx_link *l) noexcept:
    tgx_unlink(l)
    PyObject_GC_Track(o)


cdef void track_all() noexcept:
    """Let the collector know all objects."""
    cdef int i
    cdef tgx_link *l
    cdef tgx_link *following
    cdef PyObject *o
    for i in range(_nrings):
        l = _rings[i].head.next
        while l != _rings[i].head:
            following = l.next
            o = <PyObject *>(<char *>l - _rings[i].offset)
            if o.ob_refcnt:             # it is not being freed
                track(o, l)
            l = following


def untracked_objects():
    """The tensors and nodes that the garbage collector does not know, oldest of each first."""
    cdef int i
    cdef tgx_link *l
    cdef PyObject *o
    cdef list found = []
    for i in range(_nrings):
        l = _rings[i].head.next
        while l != _rings[i].head:
            o = <PyObject *>(<char *>l - _rings[i].offset)
            if o.ob_refcnt:
                found.append(<object>o)
            l = l.next
    return found
