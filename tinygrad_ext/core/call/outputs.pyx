# cython: language_level=3
"""What an op writes to: the broadcast shape, and `out=` tensors made fit for it."""
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.data.dtype cimport dtype_of
from tinygrad_ext.core.data.tensor cimport (
    DIFF_VIEW, INFERENCE, READONLY, REQUIRES_GRAD, Tensor, dtype_title, empty, may_overlap, needs_grad, set_geometry, shape_text,
)
from tinygrad_ext.core.data.types cimport TGX_BOOL, TGX_MAX_DIMS, is_complex, is_inexact, is_integral


cdef int broadcast_shape(Tensor t, int64_t *shape, int *ndim) except -1:
    """Widen `shape` (right-aligned) so that t fits: 0, or 1 + the dimension whose sizes differ and are not 1."""
    cdef int i, shift
    cdef int64_t s
    if t.rank > ndim[0]:
        shift = t.rank - ndim[0]
        for i in range(ndim[0] - 1, -1, -1):
            shape[i + shift] = shape[i]
        for i in range(shift):
            shape[i] = 1
        ndim[0] = t.rank
    shift = ndim[0] - t.rank
    for i in range(t.rank):
        s = t.sizes[i]
        if shape[i + shift] == s or s == 1:
            continue
        if shape[i + shift] != 1:
            return i + shift + 1
        shape[i + shift] = s
    return 0


cdef int refuse_cast(int src, int dst) except -1:
    """RuntimeError when writing src's dtype into dst would lose the kind of number."""
    cdef bint ok = not ((is_complex(src) and not is_complex(dst)) or (not is_integral(src) and is_integral(dst))
                        or (src != TGX_BOOL and dst == TGX_BOOL))
    if not ok:
        raise RuntimeError(f"result type {dtype_title(src)} can't be cast to the desired output type {dtype_title(dst)}")
    return 0


cdef int prepare_out(Tensor out, const int64_t *shape, int ndim, int dtype) except -1:
    """Give an `out=` tensor the result's shape, and refuse dtypes that cannot take it."""
    cdef int64_t[TGX_MAX_DIMS] wanted       # a copy: the warning runs code that may change whatever `shape` points into
    cdef int i
    cdef bint same = out.rank == ndim
    refuse_cast(dtype, out.tid)
    for i in range(ndim):
        if same and out.sizes[i] != shape[i]:
            same = False
    if same:
        return 0
    check_readonly(out, "out=")
    for i in range(ndim):
        wanted[i] = shape[i]
    if out.count:
        warn_resized(out, wanted, ndim)
    set_geometry(out, empty(wanted, ndim, out.tid, out.device_id))
    return 0


cdef int warn_resized(Tensor out, const int64_t *shape, int ndim) except -1:
    import warnings
    warnings.warn(f"An output with one or more elements was resized since it had shape {shape_text(out)}, which does "
                  f"not match the required output shape {[shape[i] for i in range(ndim)]}. Pass an empty tensor "
                  "(out.resize_(0)) to have it sized for you.", UserWarning, stacklevel=2)
    return 0


cdef int check_readonly(Tensor out, str op) except -1:
    """RuntimeError when another library lent out's memory for reading."""
    if out.bits & READONLY:
        raise RuntimeError(f"{op}: the tensor to write to is read-only: its memory was lent by another library that does not "
                           "allow writing. Clone it first.")
    return 0


cdef int check_writable(Tensor out, str op) except -1:
    """What every write into a given tensor asks first: it is no borrowed memory, and its elements are apart."""
    check_readonly(out, op)
    if may_overlap(out):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                           f"location. Please clone() the tensor before performing the operation ({op}).")
    return 0


cdef int require_grad(Tensor t) except -1:
    """What requires_grad=True asks for where a tensor is made."""
    if not is_inexact(t.tid):
        refuse_grad(t.tid)
    t.bits |= REQUIRES_GRAD
    return 0


cdef int refuse_grad(int dtype) except -1:
    raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients, got {dtype_of(dtype)}: give a "
                       "floating dtype, or leave requires_grad out")


cdef bint shows_history(Tensor t) noexcept:
    """Whether t, or what it is a view of, takes part in autograd."""
    return needs_grad(t) or (t.bits & DIFF_VIEW and t.base is not None and needs_grad(<Tensor>t.base))


cdef int check_inference(Tensor t) except -1:
    """Refuse a write to a tensor of inference mode outside it: it keeps no versions."""
    if t.bits & INFERENCE and not state().inference:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to "
                           "get a normal tensor before doing inplace update.")
    return 0
