# cython: language_level=3
"""Where gradients were cut: the last calls that took a tensor with history and returned one without.

A graph cannot tell what it does not contain. So detach(), `.data` and ops without derivative leave a line here when
they are given a tensor that needs a gradient; the source is held weakly. Rejected: a mark on the tensor that was returned, which
every op behind it would have to hand on.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.weakref cimport PyWeakref_NewRef
from tinygrad_ext.core.grad.node cimport next_seq
from tinygrad_ext.core.call.places cimport called_by_us, here, place_text, tgx_place
from tinygrad_ext.core.data.tensor cimport Tensor, needs_grad

cdef enum:
    RING = 128

cdef list _ring = [None] * RING
cdef Py_ssize_t _at = 0


cdef int _note(str what, Tensor source) except -1:
    """`what` was given a tensor that needs a gradient and returned one that does not."""
    global _at
    cdef tgx_place p = here()
    code = None
    if p.code != NULL:
        code = <object>p.code
        Py_DECREF(code)
    behind = source.node if source.node is not None else source
    _ring[_at % RING] = (what, code, p.lasti, PyWeakref_NewRef(behind, None), next_seq())
    _at += 1
    return 0


def note_cut_of(what, args):
    """Note the first tensor among the arguments that needs a gradient. The package's own calls are no cuts."""
    if called_by_us():
        return
    for a in args:
        for t in a if isinstance(a, (list, tuple)) else (a,):
            if isinstance(t, Tensor) and needs_grad(<Tensor>t):
                _note(what, <Tensor>t)
                return


def recent_cuts():
    """(what, place, the source's node or the leaf or None when it is gone, sequence number), oldest first."""
    cdef Py_ssize_t i
    cdef tgx_place p
    cdef list found = []
    for i in range(RING):
        entry = _ring[(_at + i) % RING]
        if entry is None:
            continue
        what, code, lasti, source, seq = entry
        p.code, p.lasti = NULL if code is None else <PyObject *>code, lasti
        found.append((what, place_text(p), source(), seq))
    return found


def forget_cuts_of(Tensor leaf not None):
    """Let go of the lines about a leaf, which hold it weakly: for who asks whether somebody else does."""
    cdef Py_ssize_t i
    for i in range(RING):
        if _ring[i] is not None and _ring[i][3]() is leaf:
            _ring[i] = None
