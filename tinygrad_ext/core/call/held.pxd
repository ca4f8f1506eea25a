"""Running a kernel on aliases of its tensors. See held.pyx."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op, forward_fn

# Arguments with aliases in the place of tensors; given and kept: the tensors and who keeps the aliases alive.
cdef int hold(Op op, PyObject **args, PyObject **held, list given, list kept) except -1
cdef object run_held(forward_fn run, Op op, PyObject **args, PyObject *out, bint apart)
