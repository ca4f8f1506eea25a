from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op

cdef class PublicCallable:
    cdef void *vectorcall
    cdef dict __dict__
    cdef object __weakref__

cdef class OpFunction(PublicCallable):
    cdef list ops
    cdef PyObject *first            # ops[0], borrowed
    cdef int nops
    cdef bint method
    cdef bint inplace
    cdef readonly str name
    cdef object doc                 # a docstring of its own, or None: the records' docs
    cdef public object owner
    cdef public object seen_as      # what handlers get as `func` in its place, or None

cdef class OpMethod(OpFunction):
    pass

cdef class OpPacket(OpFunction):
    pass

cdef object binary(PyObject *method, PyObject *reflected, object a, object b)     # methods are borrowed; NULL: there is none
cdef object call_packet(OpFunction f, PyObject **args, Py_ssize_t n)
