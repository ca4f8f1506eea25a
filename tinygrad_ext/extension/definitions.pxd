"""What an extension says of one op."""
from tinygrad_ext.extension.public cimport tgx_op_def

cdef class Definition:
    cdef tgx_op_def row                 # what the extension wrote, zeros for what it is too old to know
    cdef readonly str schema
    cdef readonly str doc
    cdef readonly str source
    cdef readonly int line

cdef Definition definition_of(const tgx_op_def *given)
