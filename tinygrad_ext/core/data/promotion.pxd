"""Promotion of the dtypes of operands."""

cdef struct Promotion:          # dtypes seen so far among tensors with dims, 0-d tensors, Python numbers; -1 none
    int dims
    int zero
    int number

cdef void promotion_begin(Promotion *p) noexcept
cdef int promotion_add(Promotion *p, object operand) except -1
cdef int promotion_result(Promotion *p) except -2
