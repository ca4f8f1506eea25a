# cython: language_level=3
"""Where in the user's code things happened.

A place is a code object and an instruction: two words that cost a few nanoseconds to read, and become a file and a line
only when a message is written. The last writes to saved tensors are remembered in a ring. Python's own way to a frame
makes objects for it; it is what versions of CPython take here whose internal frames we do not know.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from tinygrad_ext.core.data.tensor cimport Tensor, version_of
from tinygrad_ext.core.data.types cimport uint32_t

cdef extern from "frames.h":
    int tgx_line_of(tgx_place place)
    void tgx_set_package_folder(object folder)
    tgx_place tgx_here()
    int tgx_stack(tgx_place *to, int most)
    bint tgx_called_by_us()


def set_package_folder(folder):
    """Frames of files below this folder are not the user's."""
    tgx_set_package_folder(folder)


cdef tgx_place here() noexcept:
    return tgx_here()


cdef int stack_of_places(tgx_place *to, int most) noexcept:
    return tgx_stack(to, most)


cdef bint called_by_us() noexcept:
    """Whether the package itself calls, and not the user."""
    return tgx_called_by_us()


cdef str place_text(tgx_place p):
    if p.code == NULL:
        return "an unknown line"
    code = <object>p.code
    return f"{code.co_filename}:{tgx_line_of(p)} in {code.co_name}"


# ---- where tensors were written to ---------------------------------------------------------------------------------

cdef enum:
    RING = 256              # a power of two

cdef struct Mutation:
    size_t storage
    uint32_t version
    tgx_place place

cdef Mutation[RING] _ring
cdef int _ring_at = 0


cdef int watch(Tensor t) except -1:
    """A graph saved t: from now on in-place ops on its storage note their place."""
    if t.storage is not None:
        t.storage.watched |= WATCHED
    return 0


cdef int remember_mutation(Tensor t) except -1:
    global _ring_at
    cdef Mutation *m
    m = &_ring[_ring_at % RING]
    _ring_at += 1
    Py_XDECREF(m.place.code)
    m.storage, m.version, m.place = <size_t><PyObject *>t.storage, version_of(t), tgx_here()
    return 0


cdef str mutation_text(Tensor t, uint32_t version):
    """Where t was written to when it reached this version."""
    cdef int i, at
    for i in range(1, RING + 1):            # the latest first: memory of a tensor that is gone may have been the same
        at = (_ring_at - i) & (RING - 1)
        if t.storage is not None and _ring[at].storage == <size_t><PyObject *>t.storage and _ring[at].version == version:
            return place_text(_ring[at].place)
    return "a line no longer remembered"
