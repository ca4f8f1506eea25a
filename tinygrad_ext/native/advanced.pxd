"""Index tensors against a table: the plan, and the runs over it. See advanced.pyx."""
from cpython.object cimport PyObject
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport TGX_MAX_DIMS, int64_t

cdef extern from "advanced.h" nogil:
    enum:
        TGX_READ
        TGX_WRITE
        TGX_ADD
        TGX_NEGATIVE
        TGX_FIRST
    ctypedef struct tgx_picks:
        char *table
        char *dense
        int64_t points
        const int64_t *offset
        int nouter, ninner, width, dtype
        int64_t[TGX_MAX_DIMS] outer
        int64_t[TGX_MAX_DIMS] inner
        ptrdiff_t[TGX_MAX_DIMS] outer_table
        ptrdiff_t[TGX_MAX_DIMS] inner_table
        ptrdiff_t[TGX_MAX_DIMS] outer_dense
        ptrdiff_t[TGX_MAX_DIMS] inner_dense
        ptrdiff_t point_dense
    int64_t tgx_index_offsets(int64_t *offset, const int64_t *index, int64_t n, int64_t size, ptrdiff_t stride, int flags)
    void tgx_picks_plan(tgx_picks *p)
    void tgx_picks_run(const tgx_picks *p, int move, int64_t lo, int64_t hi)

cdef enum Outside:          # how an index outside the bounds is reported
    OUT_INDEX               # IndexError "index 5 is out of bounds for dimension 0 with size 3"
    OUT_RUNTIME             # the same as a RuntimeError
    OUT_SELECT              # IndexError "index out of range in self"
    OUT_COPY                # IndexError with the op's name in front
    OUT_TAKE                # IndexError "out of range: tried to access index ..."

cdef enum:
    FEW = 32                # offsets of so many points need no memory of their own

cdef struct Target:         # an index applied to a table: shape of the result, and the plan
    int ndim
    int64_t[TGX_MAX_DIMS] shape
    tgx_picks p
    int64_t[FEW] few

cdef object aim(Target *t, Tensor table, const int *dims, list indices, bint negative, Outside outside, str title)
cdef object aim_along(Target *t, Tensor table, int dim, Tensor index, bint negative, Outside outside, str title)
cdef int read_into(Target *t, Tensor out) except -1                  # out is contiguous, of the result's shape
cdef int write_from(Target *t, Tensor values, int move) except -1       # values contiguous or of one element
cdef Tensor like_result(Target *t, Tensor values)                       # values as write_from wants them

# kernels that change a copy of self: what to write to, and where the result goes (`out` as the kernel got it)
cdef Tensor target_of(PyObject *out, Tensor self)
cdef Tensor delivered(Tensor result, PyObject *out)
cdef Tensor filling(object value, Tensor like)          # a number, or the number in a 0-dim tensor, in like's dtype
