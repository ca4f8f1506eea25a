"""Who is asked about a call before it runs: modes, then `__torch_function__` of the argument types."""

cdef object ask(object func, tuple types, list found, tuple args, dict kwargs)
cdef bint all_declined(object error, object func) except -1         # error says that nobody handled func
