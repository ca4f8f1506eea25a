"""Which arguments of a call count: those whose type has a `__torch_function__`, or a handler somebody registered."""
from cpython.object cimport PyObject, PyTypeObject

cdef PyObject *function_of(PyTypeObject *t) noexcept                # what the type says about overriding; NULL: nothing
cdef int brings_function(object o) except -1                        # o's type is to be asked
cdef object registered_for(object t)                                # the handler somebody registered for t, or None
cdef bint is_registered(object o) except -1                         # a registered handler answers for o, not its type

cdef int dispatches(PyTypeObject *t) except -1                      # a type of tensors that has a `__torch_dispatch__`
cdef enum:
    INDEX_DEPTH = 2                     # how deep an index, t[0, [1, 2]], may be nested
    NO_FOREIGN = 1 << 30                # a flag of the thread: registered handlers declined the call that is being bound

# one argument of each type to ask, in their order; members of lists and tuples count to the given depth
cdef list overloaded(PyObject **args, Py_ssize_t n, int depth=?)
cdef int insert_overloaded(list found, object o, int depth=?) except -1     # the same for one more argument
cdef bint holds_overloaded(object o, int depth) except -1                   # whether a member of a list counts
cdef bint must_ask(PyObject **args, Py_ssize_t n) except -1         # a call with these arguments is not a plain one
