"""The one builder of history: check_targets, connect, keep, enter, give_history."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from tinygrad_ext.core.grad.node cimport Node, follow_tensor
from tinygrad_ext.core.call.places cimport WATCHED
from tinygrad_ext.core.grad.saved cimport hooked, keep_rare
from tinygrad_ext.core.data.tensor cimport INFERENCE, Tensor, version_of
from tinygrad_ext.core.data.tracking cimport tgx_is_gc

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(object o, Py_ssize_t i)

cdef int check_targets(PyObject **targets, int count, bint recording, int noutputs, str who) except -1
cdef int connect(Node n, PyObject **operands, int count, int nsaved) except -1
cdef int locate(Node n) except -1
cdef int enter(Node n) except -1
cdef int give_history(Node n, int nr, Tensor t, Py_ssize_t own) except -1
cdef int rewrite(Node n, int nr, Tensor t, int at) except -1


cdef inline bint is_number(object value) noexcept:
    """Whether a value is a number, or a tuple such as sizes: nothing that the collector could know can be reached from it."""
    cdef Py_ssize_t i
    if not tgx_is_gc(value):
        return True
    if not PyTuple_CheckExact(value):
        return False
    for i in range(PyTuple_GET_SIZE(value)):
        if tgx_is_gc(<object>PyTuple_GET_ITEM(value, i)):
            return False
    return True


cdef inline void keep_number(Node n, int k, object value) noexcept:
    """Keep a number or a tuple of numbers."""
    Py_INCREF(value)
    n.saved[k] = <PyObject *>value
    n.versions[k] = 0


cdef inline int keep(Node n, int k, object value, int output) except -1:
    """Keep an operand, or output number `output` (-1: none), at place k of n."""
    cdef Tensor t
    if not isinstance(value, Tensor):
        if n.counts == NULL and is_number(value):
            keep_number(n, k, value)
            return 0
    elif output < 0 and not hooked and not (<Tensor>value).bits & INFERENCE:
        t = <Tensor>value
        Py_INCREF(t)
        n.saved[k] = <PyObject *>t
        n.versions[k] = version_of(t)
        follow_tensor(n, t)
        if t.storage is not None:
            t.storage.watched |= WATCHED
        return 0
    return keep_rare(n, k, value, output)
