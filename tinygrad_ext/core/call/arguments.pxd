from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op

cdef struct Bound:
    PyObject *args[MAX_ARGS + 1]       # in schema order, defaults filled in; one more for a kernel's `out`
    PyObject *out                       # NULL unless given
    bint overloaded                     # some argument brings its own __torch_function__
    PyObject *owned                     # tuple made of varargs, to be released
    PyObject *packed                    # the same when it holds ints: accepted before it was made

cdef bint bind(Op op, PyObject **given, Py_ssize_t n, PyObject *kwnames, bint method, Bound *b) except -1
cdef int check_row(Op op, PyObject **args) except -1      # TypeError for what does not fit the schema at its place
cdef object explain_failure(list ops, PyObject **given, Py_ssize_t n, PyObject *kwnames, bint method)
