from cpython.object cimport PyObject
from tinygrad_ext.core.data.types cimport int64_t, tgx_scalar

cdef int64_t as_int(PyObject *o) except? -9223372036854775807
cdef double as_float(PyObject *o) except? -1e308
cdef int as_ints(PyObject *o, int64_t *into, int room, int want) except -1
cdef tgx_scalar as_scalar(object o) except *
cdef tgx_scalar as_wide_scalar(object o) except *
