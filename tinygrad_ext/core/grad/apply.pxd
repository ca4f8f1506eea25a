"""The end of a Function's call."""
from tinygrad_ext.core.grad.function cimport FunctionNode

cdef object finish(FunctionNode ctx, tuple args, object output, bint record)
