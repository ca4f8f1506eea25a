"""PyTorch itself in the same process: its tensors in our functions, and ours in its."""

cdef bint from_elsewhere(object o) except -1                        # a tensor of PyTorch itself
cdef bint is_ours(object func) except -1                            # a callable of ours; refuses those of PyTorch
