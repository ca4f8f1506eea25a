"""Levels: objects on a stack of the thread that handle operations before autograd and kernel do."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.data.tensor cimport Carried, Tensor
from tinygrad_ext.core.data.types cimport int32_t

cdef class Level:
    cdef Py_ssize_t at              # place in the stack of its thread; -1: it is on none
    cdef public frozenset known     # names that shape and dtype of its values answer, about which read() is not asked
    cdef dict __dict__

cdef class Observer(Level):
    cdef public int resting         # above zero: it is asked about values that it carries only
    cdef bint watches               # it only looks on: what runs is what runs without it, compiled programs too
    cdef object watch(self, Op op, PyObject **args, int form)           # an op of which it is the only level, if it watches

cdef class Operation:
    cdef readonly str name
    cdef readonly bint composite    # written in other operations, and may be opened
    cdef object run(self, tuple args)

cdef class OpForm(Operation):
    cdef readonly Op op
    cdef readonly int form
    cdef readonly tuple mutates     # positions of the arguments that are written to
    cdef readonly bint draws        # random numbers
    cdef readonly bint reads        # it returns Python values only

cdef class HostOperation(Operation):
    cdef readonly object function   # what it does, as it was written
    cdef readonly object opened     # the same in ops, for a level that wants to see those; or None

# Offer an operation to the levels that are active. NotImplemented: a composite that is to be opened.
cdef object offer(Operation operation, tuple args)
# The same for what the thread's flag says is worth asking; the operation itself where there is no level.
cdef object offer_row(Op op, PyObject **args, int form)     # offer() for an op with its arguments as they lie
cdef OpForm form_of(Op op, int form)
cdef bint all_watch() noexcept                              # the levels of this thread only look on
cdef int push_level(Level level, Py_ssize_t at) except -1     # on top of those that are active (-1), or at a place
cdef object perform(Operation operation, tuple args)
cdef object run_unseen(Operation operation, tuple args)     # with no level active
cdef bint holds_carried(PyObject **args, Py_ssize_t n) noexcept
cdef int check_carried(PyObject **args, Py_ssize_t n) except -1     # RuntimeError: carried by a level that is over
cdef object read_carried(object carried, str name, tuple args)      # what the value's level says of an attribute or method
# An attribute of a carried value is set, or one of another tensor to a carried value.
cdef object write_carried(object carried, object target, str name, object new)
# What observers that see attributes say of one of a tensor that no level carries, or of a method that is no op.
cdef object ask_observers(object tensor, str name, tuple args, bint writes)
cdef Carried carry_row(Level level, Tensor rows)    # shows what is behind the first dimension of `rows`
cdef Carried carry_like(Level level, object value, Tensor like)
