"""What the engine tells recorders."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, state
from tinygrad_ext.core.grad.node cimport Node

cdef int apply_seen(Node n, PyObject **grads, PyObject **results, const unsigned char *needed) except -1

cdef inline int apply_node(Node n, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
    if state().flags & TGX_LEVELS:
        return apply_seen(n, grads, results, needed)
    return n.apply(grads, results, needed)
