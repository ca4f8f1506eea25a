"""The call of a Joint."""
from cpython.object cimport PyObject
from tinygrad_ext.core.grad.function cimport FunctionNode
from tinygrad_ext.core.data.types cimport uint32_t, uint64_t

cdef enum:
    FEW_VERSIONS = 8

cdef class JointCall:
    cdef readonly object joint
    cdef readonly bint flat         # its leaves are the values of the graph, in their order
    cdef dict forward               # attributes of the Executors, whose `function` may change
    cdef dict backward
    cdef list generators            # that the forward graph draws from besides its arguments
    cdef tuple template             # what each result is, see joint.py
    cdef list flows                 # of each made value, whether a gradient flows through it
    cdef dict flags                 # of those that a way decides that: where the forward graph tells it
    cdef list own                   # numbers of the made values that are tensors; None where that is seen at each call
    cdef set written                # arguments that the program writes to
    cdef Py_ssize_t nleaves
    cdef Py_ssize_t ntensors
    cdef Py_ssize_t nwanted
    cdef Py_ssize_t nalso
    cdef Py_ssize_t nmade
    cdef Py_ssize_t nresults        # made values, then new states of generators, then flags; what is saved comes behind
    cdef int *tensors               # numbers of the arguments that are tensors
    cdef int *edges                 # of those that a gradient is given for
    cdef int *also                  # of the arguments that only the derivative of the gradients reads
    cdef int *parts                 # of each result: which made value, or argument behind those, it is; else -1
    cdef bint all_flow
    cdef bint plain                 # what is saved are tensors
    cdef bint maybe                 # behind the gradients stands whether some are there

    cdef tuple run(self, PyObject **leaves)
    cdef tuple _run(self, PyObject **leaves, uint64_t *seq)
    cdef tuple _forward(self, PyObject **leaves)
    cdef tuple _keep(self, DerivedBackward node, tuple results)
    cdef bint _flows(self, Py_ssize_t i, tuple results) except -1
    cdef int _keep_arguments(self, DerivedBackward node, PyObject **leaves) except -1
    cdef int _sort_out(self, DerivedBackward node, tuple results, PyObject **leaves) except -1
    cdef int _draw_on(self, tuple results) except -1
    cdef tuple _told(self, DerivedBackward node, list rest, tuple made, PyObject **leaves)

cdef class DerivedBackward(FunctionNode):
    cdef JointCall call
    cdef list rest                  # of what is saved, what is no tensor; None where all are
    cdef tuple arguments            # values of JointCall.also
    cdef uint32_t *versions         # of the tensors among them
    cdef dict given                 # made value that is an argument -> zeros like it
    cdef list own                   # numbers of the made values that come from this node
    cdef uint32_t[FEW_VERSIONS] few_versions

    cdef int _fill(self, PyObject **grads, PyObject **row, Py_ssize_t *n) except -1
    cdef dict _arrived(self, PyObject **grads)
    cdef object _run(self, PyObject **row, Py_ssize_t n)
    cdef tuple _arguments(self)
