"""Ops whose kernel is a Python function from elsewhere: a plugin's, a program's."""
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Elsewhere, Op
from tinygrad_ext.core.grad.plan cimport Plan

cdef enum:
    MAX_RETURNS = 16

cdef enum ReturnKind:
    R_TENSOR, R_TENSORS, R_VALUE

cdef struct ReturnSpec:
    int kind
    bint optional
    int written             # number of the mutated argument that it is, or -1

cdef class Custom(Elsewhere):
    cdef Op op
    cdef int nreturns
    cdef ReturnSpec[MAX_RETURNS] returns
    cdef tuple types                # Python types of the returns that are values
    cdef int nwrites
    cdef int[MAX_ARGS] writes       # numbers of the mutated arguments
    cdef int nfresh                 # returns that are no mutated argument
    cdef bint values                # some argument is no tensor
    cdef bint lists                 # some argument or return is a list of tensors
    cdef public int watch           # calls left in which the arguments are watched for undeclared writes
    cdef Plan plan                  # of the backward, or None
    cdef object node_type
    cdef object setup               # setup_context, or None
    cdef bint keyword_inputs        # setup_context is given the keyword-only arguments too
