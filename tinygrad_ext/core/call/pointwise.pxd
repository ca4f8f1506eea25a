"""What a pointwise op makes of its operands, also for whoever runs its loops otherwise: graph/lowering.pyx."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport TGX_MAX_DIMS, TGX_MAX_OPERANDS, int64_t, tgx_loop, tgx_scalar

cdef struct Decision:                   # of a call, before its loop
    int64_t[TGX_MAX_DIMS] shape
    int ndim
    int dtype                       # that it is computed in
    int out_dtype
    int device
    tgx_loop loop
    tgx_scalar[8] aux
    double[2 * TGX_MAX_OPERANDS] numbers        # doubles, so that the slots are aligned
    PyObject *operands[TGX_MAX_OPERANDS]        # tensors as the loop reads them; NULL: a number

# Shape, dtypes, device and scalars, with the errors of eager mode; an operand of the result's shape, whose layout it takes, or
# None.
cdef Tensor decide(Op op, PyObject **args, PyObject *out, Decision *p)

# The loop of an op over halves whose second operand is a number of float32, its first scalar; NULL: it has none.
cdef tgx_loop loop_by_number(Op op, int dtype)

# An op whose result is real cannot be written into a complex tensor that it reads.
cdef int refuse_real_result(Op op, PyObject **args, PyObject *out) except -1

# Whether an integer is an element of an integral dtype; of any other dtype it is.
cdef bint fits(int64_t i, int dtype) noexcept
