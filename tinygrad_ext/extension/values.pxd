"""Python's values and C's."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport ArgSpec
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport TGX_MOST
from tinygrad_ext.extension.public cimport tensor_t, tgx_ctx, tgx_dtype, value_t

cdef tgx_dtype[TGX_MOST] dtype_codes                                      # by our number
cdef int number_of(tgx_dtype code) except -1                                # our number; TypeError for none of ours
cdef int pack(tgx_ctx *c, ArgSpec *s, PyObject *o, value_t *v) except -1    # an argument, borrowed, by its declaration
cdef int hold(tgx_ctx *c, object o) except -1                               # o lives as long as the call
cdef int pack_any(tgx_ctx *c, object o, value_t *v) except -1
cdef int pack_result(tgx_ctx *c, bint tensors, object o, value_t *v) except -1
cdef int give(tgx_ctx *c, object o, value_t *v) except -1                   # a result: its tensors belong to the receiver
cdef object read(const value_t *v)                                          # borrowed
cdef object take(tgx_ctx *c, value_t *v, PyObject **args, int n)            # tensors that are no arguments are given away
cdef int drop(value_t *v, PyObject **args, int n) except -1
cdef Tensor tensor_of(tensor_t *t, str what)                                # TypeError for what is none
