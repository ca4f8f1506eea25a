from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport int64_t, tgx_loop, tgx_scalar
from tinygrad_ext.core.loops.iterate cimport tgx_casts

cdef extern from "casts.h" nogil:
    void tgx_use_casts(const tgx_casts *)

cdef const tgx_casts *casts() noexcept                      # for the modules with kernels that call tgx_cast_loop
cdef int copy_into(Tensor dst, Tensor src) except -1       # src broadcasts to dst; converts the dtype
cdef Tensor contiguous(Tensor t)
cdef Tensor cast(Tensor t, int dtype)                       # fresh memory only when the dtype differs
cdef Tensor clone(Tensor t)                                 # fresh memory, order of dimensions kept
cdef bint near_enough(const tgx_scalar *s, int dtype) noexcept
cdef object rounded(object value, int dtype)
cdef tgx_scalar checked_scalar(object value, int dtype) except *   # RuntimeError when the dtype cannot hold it
cdef int fill(Tensor t, object value) except -1
cdef Tensor single_one(Tensor t)
cdef int bring_beside(Tensor t, list tensors) except -1
cdef int zero(Tensor t) except -1
cdef bint broadcasts(Tensor src, Tensor dst) noexcept
cdef Tensor bits_of(Tensor t)                               # the codes of a plugin's dtype as integers, in the same memory
cdef Tensor of_bits(Tensor t, int dtype)                    # and back
cdef tgx_loop cast_loop(int source, int target) noexcept    # of one operand; the same dtype: a copy
