from tinygrad_ext.core.node cimport Node

cdef class DelayedError(Node):
    cdef object message         # a str; declared so because Cython builds the trashcan only where a cycle could be

cdef DelayedError delayed_error(Node source, str message, list sources, int noutputs)
