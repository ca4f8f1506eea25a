cdef class Plan:
    cdef readonly object function   # the Function class
    cdef object forward             # what the class had when the plan was made
    cdef object setup
    cdef bint separate              # forward takes no ctx; setup_context is given it
    cdef object node_type
    cdef tuple names                # parameters of forward but ctx, *args and **kwargs
    cdef Py_ssize_t npositional
    cdef Py_ssize_t nrequired
    cdef Py_ssize_t npositional_only
    cdef tuple defaults             # of the positional parameters after the required ones
    cdef tuple keyword_defaults     # of the keyword-only parameters; MISSING where there is none
    cdef str var_positional         # name of *args, or None
    cdef str var_keyword            # name of **kwargs, or None
    cdef bint simple                # a call without keywords that fills the positional parameters needs no binding

    cdef bint fits(self, Py_ssize_t given) noexcept
    cdef tuple bind(self, tuple args, dict kwargs)
    cdef tuple names_of(self, Py_ssize_t n, tuple extra)
    cdef str argument(self, Py_ssize_t i, Py_ssize_t n, tuple extra)
    cdef tuple row(self, object got, str node, Py_ssize_t n, Py_ssize_t wanted, tuple extra)
    cdef tuple _by_name(self, object got, str node, tuple names)
    cdef object _wrong_count(self, tuple got, str node, Py_ssize_t n, tuple extra, bint was_list)

cdef Plan plan_of(object cls)
cdef object backward_of(object function)
