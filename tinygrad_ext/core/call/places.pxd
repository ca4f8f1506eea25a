"""Lines of the user's code: where a node was made, where a tensor was written to."""
from cpython.object cimport PyObject
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport uint32_t

cdef extern from "frames.h":
    ctypedef struct tgx_place:
        PyObject *code
        int lasti

cdef enum:
    WATCHED = 1             # bits of Storage.watched: in-place ops note their place,
    GUARDED = 2             # and announce themselves

cdef tgx_place here() noexcept         # the user's line, code object as a new reference
cdef int stack_of_places(tgx_place *to, int most) noexcept  # the user's frames, the innermost first, borrowed; how many
cdef bint called_by_us() noexcept
cdef str place_text(tgx_place p)
cdef int watch(Tensor t) except -1
cdef int remember_mutation(Tensor t) except -1

cdef inline int note_mutation(Tensor t) except -1:
    """Remember that t was written to just now, if a graph may ask (call it after the bump)."""
    return remember_mutation(t) if t.storage is not None and t.storage.watched else 0

cdef str mutation_text(Tensor t, uint32_t version)
