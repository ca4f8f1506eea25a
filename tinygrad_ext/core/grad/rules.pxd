"""The history node of an op."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Rule
from tinygrad_ext.core.grad.node cimport Node

cdef class RuleNode(Node):
    cdef int first_edge(self, int tensor) noexcept
    cdef int edge_count(self, int tensor) noexcept
    cdef int _deliver(self, int tensor, object got, PyObject **results, const unsigned char *needed) except -1
    cdef object _call_rule(self, Rule *rule, PyObject **grads, const unsigned char *needed, dict unpacked)
    cdef object _call_with(self, Rule *rule, PyObject **params, PyObject **grads, const unsigned char *needed, dict unpacked)
    cdef str _saved_name(self, int k)
