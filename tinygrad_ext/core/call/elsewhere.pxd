"""PyTorch itself in the same process: its tensors in our functions, and ours in its; arrays of others."""

cdef bint from_elsewhere(object o) except -1                        # a tensor of PyTorch itself
cdef bint is_ours(object func) except -1                            # a callable of ours; refuses those of PyTorch
cdef bint must_convert(object o) except -1                          # another library's tensor or array, NumPy's excepted
cpdef str class_name(object o)                                      # the type's name in messages: torch.Tensor
cpdef str how_to_convert(object o)                                  # what a message says about another library's array
