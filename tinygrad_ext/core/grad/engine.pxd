"""The backward pass, for compiled callers."""
from tinygrad_ext.core.data.tensor cimport Tensor

cpdef object run_backward(roots, grads, bint keep_graph, bint create_graph, inputs, bint accumulate, bint allow_unused, observer=*)
cpdef object backward_scalar(Tensor t, bint keep_graph, bint create_graph)
