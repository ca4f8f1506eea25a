"""Running a function without asking about it: what Tensor does by itself, and the switches of the protocol."""

cdef object run_plain(object cls, object func, object types, tuple args, dict kwargs)   # Tensor.__torch_function__ of cls
