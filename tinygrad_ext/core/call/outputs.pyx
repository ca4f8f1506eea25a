# cython: language_level=3
"""What an op writes to: the whole policy of targets, tensors given as `out=` and those of in-place forms.

Whoever runs a kernel (pointwise.pyx, kernel_targets.pxi, inplace.pyx for all else) asks `check_target` before it runs, which
refuses while nothing is changed yet, lets the kernel write into the target where that is safe, or else into fresh memory,
and hands that to `deliver`. Words of refusals and the warning stand here alone.

An `out=` of another shape is resized by `deliver`, at the very end: a handler of the warning may then do to the operands
what it likes, and an `out=` that is an operand needs no case of its own. Rejected: resizing before the kernel runs, which takes
aliases of all operands to be safe from both.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport Op, POINTWISE, state
from tinygrad_ext.core.call.kernel cimport TGX_JOINS, TGX_REPEATS, TGX_REPEATS_INPLACE
from tinygrad_ext.core.data.dtype cimport CPU, device_of, dtype_of, is_host
from tinygrad_ext.core.data.tensor cimport (
    CONTIGUOUS, DIFF_VIEW, INFERENCE, READONLY, REQUIRES_GRAD, Tensor, dtype_title, empty, may_overlap, needs_grad,
    set_geometry, shape_text,
)
from tinygrad_ext.core.data.types cimport (
    A_TENSOR, F_LIST, ITEMSIZE, TGX_BOOL, TGX_U8, is_complex, is_inexact, is_integral, uint32_t,
)
from tinygrad_ext.core.loops.copy cimport clone, copy_into

from tinygrad_ext.core.data.dtype import can_cast


# ---- shapes --------------------------------------------------------------------------------------------------------

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


# ---- before the kernel runs ----------------------------------------------------------------------------------------

cdef int refuse_cast(int src, int dst) except -1:
    """RuntimeError when writing src's dtype into dst would lose the kind of number."""
    cdef bint ok = not ((is_complex(src) and not is_complex(dst)) or (not is_integral(src) and is_integral(dst))
                        or (src != TGX_BOOL and dst == TGX_BOOL))
    if not ok:
        raise RuntimeError(f"result type {dtype_title(src)} can't be cast to the desired output type {dtype_title(dst)}: Expected "
                           f"result to be safely castable from {dtype_title(src)} dtype, but got result with dtype "
                           f"{dtype_title(dst)}; write to one of {dtype_title(src)}, or convert the result")
    return 0


_C_NAMES = {
    "Byte": "unsigned char", "Char": "signed char", "Short": "short int", "Int": "int", "Long": "long int", "Bool": "bool",
    "UInt16": "short unsigned int", "UInt32": "unsigned int", "UInt64": "long unsigned int",
    "Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16",
    "ComplexFloat": "c10::complex<float>", "ComplexDouble": "c10::complex<double>", "ComplexHalf": "c10::complex<c10::Half>",
}


cdef str _c_name(int dtype):
    """A dtype as PyTorch's messages about out= say it: by its type in C."""
    return _C_NAMES.get(dtype_title(dtype), dtype_title(dtype))


cdef bint _takes_list(Op op):
    """Whether it is written in other ops, and of a list of tensors."""
    return op.pair == NULL and op.nargs and op.args[0].kind == A_TENSOR and op.args[0].flags & F_LIST


cdef int check_target(Op op, Tensor out, int device, const int64_t *sizes, int rank, int dtype, bint inplace) except -1:
    """Whether out has the shape of a result; 0: it is to be resized. Refuses what cannot take the result.

    Nothing is copied between the cpu and meta; a factory has no device of its own and may fill either.
    """
    cdef uint32_t flags = 0 if op.pair == NULL else op.pair.flags
    if out.device_id != device and (op.ntensors or out.device_id == CPU) and not _both_here(out.device_id, device):
        raise RuntimeError(f"{op.title}(): Expected out tensor to have device {device_of(device)}, but got {out.device} "
                           "instead")
    if dtype != out.tid:
        # what joins tensors, by a kernel or written in what does
        if (flags & TGX_JOINS or _takes_list(op)) and not can_cast(dtype_of(dtype), dtype_of(out.tid)):
            raise TypeError(f"torch.{op.title}(): input types can't be cast to the desired output type {dtype_title(out.tid)}: "
                            f"together they make {dtype_title(dtype)}")
        if op.bytes and out.tid != TGX_U8 and out.tid != TGX_BOOL:
            raise RuntimeError(f"{op.title} only supports bool tensor for result, got: {dtype_title(out.tid)}; uint8 is taken too")
        if op.exact and not inplace and op.refuses is not None and "out" in op.refuses:
            raise RuntimeError(op.refuses["out"].format(wanted=dtype_title(dtype), got=dtype_title(out.tid)))
        if op.exact and not inplace and not op.bytes:
            raise RuntimeError(f"{op.title}(): Expected out tensor to have dtype {_c_name(dtype)}, but got "
                               f"{_c_name(out.tid)} instead")
        if inplace and op.exact_inplace:
            raise RuntimeError(f"In-place {op.title} is not supported for {dtype_title(out.tid)} tensors: the operation's "
                               f"result requires dtype {dtype_title(dtype)}")
        if not op.bytes:
            refuse_cast(dtype, out.tid)
    if has_sizes(out, sizes, rank):
        if out.bits & (CONTIGUOUS | READONLY) != CONTIGUOUS:
            if flags & TGX_REPEATS or inplace and flags & TGX_REPEATS_INPLACE:
                check_readonly(out, op.title)
            else:
                check_writable(out, op.title)
        return 1
    if inplace:
        raise RuntimeError(f"output with shape {shape_text(out)} doesn't match the broadcast shape "
                           f"{[sizes[i] for i in range(rank)]}")
    check_readonly(out, "out=")
    return check_writable(out, op.title) if op.kind == POINTWISE else 0


cdef bint _both_here(int a, int b) noexcept:
    """Whether both are memory of this process, which is converted where it is not read as it lies there."""
    return is_host(a) and is_host(b)


cdef int check_inputs(Op op, PyObject **args, Tensor out, int64_t count, bint inplace) except -1:
    """Refuse a target that has elements in common with an input, where the record says that PyTorch does.

    count: elements that it will have after it is resized, which PyTorch does in place; -1 for those it has.
    """
    cdef int k
    if inplace and op.pair != NULL and op.pair.flags & TGX_REPEATS_INPLACE:
        check_readonly(out, op.title)
    else:
        check_writable(out, op.title)
    for k in range(max(op.first_apart, 1 if inplace else 0), op.ntensors):
        o = <object>args[op.tensors[k]]
        if op.only_apart >= 0 and op.tensors[k] != op.only_apart:
            continue
        if isinstance(o, Tensor):
            if _covers(out, count, <Tensor>o) and not (o is out and op.tensors[k] == op.may_be_target):
                refuse_shared(op)
        elif isinstance(o, (list, tuple)):
            for t in o:     # a mask is read before anything is written
                if isinstance(t, Tensor) and _covers(out, count, <Tensor>t) and not (t is out and out.tid == TGX_BOOL):
                    refuse_shared(op)
    return 0


cdef bint _covers(Tensor a, int64_t count, Tensor b) noexcept:
    """Whether two tensors have memory in common, as PyTorch judges: of windows with gaps it says nothing."""
    cdef int64_t n = a.count if count < 0 else count
    if not n or a.storage is not b.storage:
        return False
    if a is b:
        return True
    if a.storage is None:           # on meta no two have
        return False
    if not b.count or not (count >= 0 or _is_dense(a)) or not _is_dense(b):
        return False
    return a.data < b.data + b.count * ITEMSIZE[b.tid] and b.data < a.data + n * ITEMSIZE[a.tid]


cdef bint _is_dense(Tensor t) noexcept:
    """Whether the elements lie side by side, in whatever order."""
    return t.bits & CONTIGUOUS or (_last(t) + 1 == t.count and not may_overlap(t))


cdef int refuse_shared(Op op) except -1:
    raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                       f"memory location. Please clone() the tensor before performing the operation ({op.title}).")


cdef int check_apart(Op op, PyObject **targets, int count, const unsigned char *fit) except -1:
    """Refuse targets of several results that have an element in common. fit: which of them keep their memory."""
    cdef int i, k
    for i in range(count):
        for k in range(i):
            if targets[i] == targets[k] or (fit[i] and fit[k] and _meet(<Tensor>targets[i], <Tensor>targets[k])):
                raise RuntimeError("unsupported operation: some elements of the tensors given as out refer to a single memory "
                                   f"location. {op.title}() writes another result to each; pass tensors of their own.")
    return 0


cdef bint _meet(Tensor a, Tensor b) except -1:
    """Whether two tensors may have an element in common; two columns of a matrix have none."""
    cdef int64_t between, reach = 0
    if a.storage is not b.storage or a.storage is None or not a.count or not b.count:
        return False
    if a.data > b.data:
        a, b = b, a
    between = b.data - a.data
    if between >= (_last(a) + 1) * ITEMSIZE[a.tid]:
        return False
    if a.tid != b.tid or between % ITEMSIZE[a.tid]:
        return True
    if [a.strides[i] for i in range(a.rank)] != [b.strides[i] for i in range(b.rank)]:
        return True
    steps = [(max(a.sizes[i], b.sizes[i]), a.strides[i]) for i in range(a.rank)] + [(2, between // ITEMSIZE[a.tid])]
    for size, step in sorted(steps, key=lambda row: row[1]):
        if size > 1 and step <= reach:
            return True
        reach += (size - 1) * step
    return False


cdef int64_t _last(Tensor t) noexcept:
    """The last element, counted in memory from the first."""
    cdef int64_t at = 0
    cdef int i
    for i in range(t.rank):
        at += (t.sizes[i] - 1) * t.strides[i]
    return at


# ---- after it ------------------------------------------------------------------------------------------------------

cdef int deliver(Op op, Tensor out, Tensor made, bint own, bint inplace) except -1:
    """Leave a finished result in out. own: nobody else has it, so that a resized out may take over its memory.

    What out can take is asked again: while the kernel ran, another thread may have given it other memory.
    """
    if check_target(op, out, made.device_id, made.sizes, made.rank, made.tid, inplace):
        return copy_into(out, made)
    if out.count:
        _warn_resized(out, made)
    return _replace(out, made, own)


cdef int deliver_all(Op op, PyObject **targets, int count, list made, bint own) except -1:
    """The same for several results: all targets are asked and all warnings shown before the first is changed."""
    cdef Tensor t
    cdef int i, k
    cdef unsigned char *fit
    if len(made) != count:
        if op.makes_list:
            raise RuntimeError(f"{op.title}(): Expected an out= argument of size {len(made)}, a tensor for each result, but got "
                               f"{count}")
        raise TypeError(f"{op.title}() returned {len(made)} results, its schema names {count}")
    fits = bytearray(count)
    fit = fits
    for i in range(count):
        t = <Tensor?>made[i]
        fit[i] = check_target(op, <Tensor>targets[i], t.device_id, t.sizes, t.rank, t.tid, False)
    check_apart(op, targets, count, fit)
    for i in range(count):
        for k in range(count):
            if i != k and (<Tensor>made[i]).storage is (<Tensor>targets[k]).storage:       # the write to k would change it
                made[i] = clone(<Tensor>made[i])
    for i in range(count):
        if not fit[i] and (<Tensor>targets[i]).count:
            _warn_resized(<Tensor>targets[i], <Tensor>made[i])
    for i in range(count):
        t = <Tensor>made[i]
        if check_target(op, <Tensor>targets[i], t.device_id, t.sizes, t.rank, t.tid, False):
            copy_into(<Tensor>targets[i], t)
        else:
            _replace(<Tensor>targets[i], t, own)
    return 0


cdef int _replace(Tensor out, Tensor made, bint own) except -1:
    cdef Tensor fresh = made
    if not own or made.tid != out.tid:
        fresh = empty(made.sizes, made.rank, out.tid, out.device_id)
        copy_into(fresh, made)
    return set_geometry(out, fresh)


cdef int _warn_resized(Tensor out, Tensor made) except -1:
    import warnings
    warnings.warn(f"An output with one or more elements was resized since it had shape {shape_text(out)}, which does "
                  f"not match the required output shape {shape_text(made)}. Pass an empty tensor "
                  "(out.resize_(0)) to have it sized for you.", UserWarning, stacklevel=2)
    return 0


# ---- what a tensor allows ------------------------------------------------------------------------------------------

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
