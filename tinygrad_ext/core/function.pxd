from tinygrad_ext.core.node cimport Node

cdef class FunctionNode(Node):
    cdef tuple to_save                      # what save_for_backward was given, until the forward is over
    cdef tuple for_forward                  # what save_for_forward was given
    cdef tuple dirty
    cdef tuple non_differentiable
    cdef readonly object needs_input_grad
    cdef public bint materialize_grads
    cdef bint has_inputs                    # which inputs were tensors is known in is_tensor
    cdef list is_tensor
    cdef list output_of                     # for each saved tensor: the output it is, or -1
    cdef bint access_clears
    cdef bint accessed
    cdef object run_backward                # legacy style: bound backward of the per-call instance
    cdef object names                       # names of the forward's arguments, for messages and dict returns
