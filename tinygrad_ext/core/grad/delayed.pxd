from tinygrad_ext.core.grad.node cimport Node

cdef class DelayedError(Node):
    cdef str message

cdef DelayedError delayed_error(Node source, str message, list sources, int noutputs)
