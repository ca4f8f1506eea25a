"""The backward pass, for compiled callers."""

cpdef object run_backward(roots, grads, bint keep_graph, bint create_graph, inputs, bint accumulate, bint allow_unused, observer=*)
