"""Ops whose kernel is a function of an extension."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op
from tinygrad_ext.core.grad.custom_call cimport CustomCall
from tinygrad_ext.extension.definitions cimport Definition
from tinygrad_ext.extension.nodes cimport TableNode
from tinygrad_ext.extension.public cimport tgx_ctx, tgx_geometry, value_t

cdef class TableCall(CustomCall):
    cdef Definition definition
    cdef bint short                     # it writes to nothing and is no composite
    cdef bint plain                     # it is short and returns one tensor
    cdef int nedges
    cdef int[MAX_ARGS] edges            # numbers of the arguments that get gradients
    cdef tuple edge_names
    cdef str node_title

    cdef object compute(self, PyObject **args)
    cdef object _record(self, PyObject **args)
    cdef object _run_checked(self, PyObject **args)
    cdef object _run_own(self, PyObject **args)
    cdef int _allocate(self, tgx_ctx *c, PyObject **args, value_t *inputs, value_t *outputs) except -1
    cdef int measure(self, tgx_ctx *c, value_t *inputs, tgx_geometry *shapes) except -1
    cdef int _check_shapes(self, PyObject **args, object result) except -1
    cdef int _set_up(self, TableNode n, PyObject **args, object result) except -1
