# cython: language_level=3
"""Runs every pointwise op: promotion, broadcasting, output, loop.

The short way serves operands of one dtype and one contiguous shape and touches no Python object but the
result. The general way converts operands whose dtype differs from the computing dtype, puts numbers on the
stack as stride-0 operands, and walks them with the iterator.

The iterator copies sizes, strides and addresses, and the storages are kept while it works without the interpreter's lock: what
another thread does to the tensors then changes nothing. What happens before (a conversion lets go of the lock, a finalizer
runs) may, and where it did, the call is planned again. Rejected: aliases in the place of large operands, as the caller of
kernels has them: its kernels read the tensors themselves, the iterator does not.
"""
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from libc.string cimport memcpy
from tinygrad_ext.core.loops.copy cimport cast, near_enough
from tinygrad_ext.core.data.boxed cimport as_scalar, as_wide_scalar
from tinygrad_ext.core.call.dispatch cimport Op, on_device, set_pointwise
from tinygrad_ext.core.data.dtype cimport CODED, CPU, META, default_id, dtype_of
from tinygrad_ext.core.loops.iterate cimport GRAIN, iter_add, iter_begin, iter_run, tgx_iter
from tinygrad_ext.core.call.outputs cimport (
    broadcast_shape, check_target, deliver, has_sizes, note_write, refuse_cast, refuse_shared,
)
from tinygrad_ext.core.data.promotion cimport Promotion, promotion_add, promotion_begin, promotion_result
from tinygrad_ext.core.data.tensor cimport (
    CONTIGUOUS, READONLY, Tensor, dtype_title, empty, empty_like, geometry_changes, is_tensor, read_scalar, same_sizes, shape_text,
    write_scalar,
)
from tinygrad_ext.core.data.types cimport (
    A_SCALAR, ITEMSIZE, TGX_ABOVE, TGX_BAD_VALUE, TGX_BOOL, TGX_C64, TGX_F32, TGX_F64, TGX_I64, TGX_MAX_OPERANDS,
    TGX_NEGATIVE_POWER, TGX_U64, TGX_ZERO_DIVISION, int64_t, is_coded, is_complex, is_half, is_integral, is_mask, is_native_float,
    is_natural, is_signed, tgx_loop, tgx_scalar, uint64_t,
)

from tinygrad_ext.core.data.dtype import finfo
from tinygrad_ext.core.call.op_tables import ops as _ops
from tinygrad_ext.core.loops.loop_tables import numbers as _numbers

cdef dict _by_number = _numbers

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object o, int *overflow) noexcept


# ---- operands ------------------------------------------------------------------------------------------------------

cdef int _broadcast_all(Op op, PyObject **args, int64_t *shape, int *ndim) except -1:
    cdef int i, at
    cdef object o
    cdef Tensor t
    ndim[0] = 0
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if isinstance(o, Tensor):
            t = <Tensor>o
            at = broadcast_shape(t, shape, ndim)
            if at:
                raise RuntimeError(
                    f"The size of tensor a ({shape[at - 1]}) must match the size of tensor b "
                    f"({t.sizes[at - 1 - (ndim[0] - t.rank)]}) at non-singleton dimension {at - 1}: {op.title}() got "
                    + ", ".join([f"{<object>op.args[op.tensors[k]].name} {shape_text(<Tensor><object>args[op.tensors[k]])}"
                                 for k in range(op.ntensors) if isinstance(<object>args[op.tensors[k]], Tensor)])
                    + ". Sizes must be equal or 1, counted from the last dimension.")
    return 0


cdef bint _same_window(Tensor a, Tensor b) noexcept:
    cdef int i
    if a.data != b.data or a.rank != b.rank:
        return False
    for i in range(a.rank):
        if a.sizes[i] != b.sizes[i] or (a.strides[i] != b.strides[i] and a.sizes[i] != 1):
            return False
    return True


cdef bint _disturbs(Tensor out, Tensor t) noexcept:
    """Writing out could change elements of t that are still to be read."""
    return t.storage is out.storage and t.storage is not None and not _same_window(out, t)


# ---- running -------------------------------------------------------------------------------------------------------

cdef int raise_loop_error(int code, Op op) except -1:
    if code == TGX_ZERO_DIVISION:
        raise RuntimeError(f"ZeroDivisionError: {op.title}() divided an integer by zero. Use a floating dtype to get inf.")
    if code == TGX_NEGATIVE_POWER:
        raise RuntimeError("Integers to negative integer powers are not allowed. Convert the base to a floating dtype.")
    if code == TGX_BAD_VALUE and op.failure is not None:
        raise RuntimeError(op.failure)
    raise RuntimeError(f"{op.title}() failed with code {code}")


cdef object _no_loop(Op op, int dtype):
    if is_complex(dtype):
        raise NotImplementedError(f'"{op.title}" not implemented for \'{dtype_title(dtype)}\': compute with .real and .imag, '
                                  "or with .abs() and .angle()")
    better = ".long()" if is_natural(dtype) or op.loops[<int>TGX_F32] == NULL else ".float()"
    raise NotImplementedError(f'"{op.title}" not implemented for \'{dtype_title(dtype)}\': convert the argument first, '
                              f"for example with {better}")


include "pointwise_scalars.pxi"


include "pointwise_short.pxi"


include "pointwise_bools.pxi"


# ---- the general way -----------------------------------------------------------------------------------------------

cdef object _mixture(Op op, PyObject **args, PyObject *out):
    """Any mixture of tensors, dtypes, layouts and numbers."""
    cdef Decision p
    cdef uint64_t before
    cdef int code
    cdef Tensor made
    cdef Op worker
    cdef list kept
    while True:
        before = geometry_changes
        model = decide(op, args, out, &p)
        if p.device > META:
            made = on_device(op, args, out)
            if out != NULL:
                deliver(op, <Tensor><object>out, made, True, args[0] == out)
            return made
        made = _target(op, args, <Tensor><object>out, &p) if out != NULL else None
        if made is None:
            made = empty(p.shape, p.ndim, p.out_dtype, p.device) if model is None or out != NULL else empty_like(model, p.out_dtype)
        if p.device:
            break
        worker = _of_bools(op, args, &p, made.count)
        if worker is not None:
            kept = [] if made.count > GRAIN else None
        else:
            worker = op
            kept = _read(op, args, &p, made.count > GRAIN)
            _number_of(op, args, &p)
        if before == geometry_changes or _holds(worker, &p, made):
            break
    if p.device == 0:
        code = _walk(worker, p.loop, p.operands, p.numbers, made, p.dtype, p.aux, kept)
        if code:
            if <PyObject *>made == out:         # what was written by then stays
                note_write(made)
            raise_loop_error(code, op)
    if out != NULL and <PyObject *>made != out:
        deliver(op, <Tensor><object>out, made, True, args[0] == out)
    return made


cdef Tensor decide(Op op, PyObject **args, PyObject *out, Decision *p):
    """Shape, dtypes, device and scalars; an operand of the result's shape, or None."""
    cdef Promotion promotion
    cdef int i
    cdef PyObject *o
    cdef bint on_cpu = False
    cdef Tensor model = None
    promotion_begin(&promotion)
    p.device = 0
    _broadcast_all(op, args, p.shape, &p.ndim)
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if not op.fixed_inputs & (1 << i):
            promotion_add(&promotion, <object>o)
        if isinstance(<object>o, Tensor):
            if (<Tensor>o).device_id:
                p.device = max(p.device, CODED if is_coded((<Tensor>o).tid) else (<Tensor>o).device_id)
            elif (<Tensor>o).rank:
                on_cpu = True
            if model is None and has_sizes(<Tensor>o, p.shape, p.ndim):
                model = <Tensor>o
    if p.device > META:
        return None
    if p.device and (on_cpu or (model is not None and model.device_id == 0)):
        raise RuntimeError(f"{op.title}(): Tensor on device cpu is not on the expected device meta! Give all tensors one device; "
                           "only 0-dim tensors of the cpu go with tensors on meta.")
    if op.scalars_promote:
        for i in range(op.nscalars):
            promotion_add(&promotion, <object>args[op.scalars[i]])
    p.dtype = promotion_result(&promotion)
    if is_coded(p.dtype):           # float16 with a complex number
        p.device = CODED
        return None
    if op.refuses is not None:
        _refuse(op, args, p.dtype)
    if op.to_float and is_integral(p.dtype):
        p.dtype = default_id()
    if op.bool_to_int and p.dtype == TGX_BOOL:
        p.dtype = TGX_I64
    p.out_dtype = _output(op, p.dtype)
    if out != NULL and out == args[0]:
        refuse_cast(p.out_dtype, (<Tensor><object>out).tid)
    if op.loops[p.dtype] == NULL:
        _no_loop(op, p.dtype)
    _read_scalars(op, args, p.aux, p.dtype)
    p.loop = op.loops[p.dtype]
    if is_half(p.dtype) and op.ntensors == 2 and not isinstance(<object>args[op.tensors[1]], Tensor):
        if loop_by_number(op, p.dtype) != NULL:
            p.loop, p.aux[0] = loop_by_number(op, p.dtype), as_scalar(<object>args[op.tensors[1]])
    return model


cdef tgx_loop loop_by_number(Op op, int dtype):
    found = _by_number.get(<size_t>op.loops[dtype])
    return NULL if found is None else <tgx_loop><size_t>found


cdef int _number_of(Op op, PyObject **args, Decision *p) except -1:
    """What a tensor without dimensions holds beside halves is a number too, unless it is of their dtype."""
    cdef Tensor t
    if not is_half(p.dtype) or op.ntensors != 2:
        return 0
    if not isinstance(<object>args[op.tensors[0]], Tensor) or not isinstance(<object>args[op.tensors[1]], Tensor):
        return 0
    t = <Tensor><object>args[op.tensors[1]]
    if t.rank == 0 and t.tid != p.dtype and loop_by_number(op, p.dtype) != NULL:
        p.loop, p.aux[0] = loop_by_number(op, p.dtype), as_scalar(read_scalar(t.data, t.tid))
    return 0


cdef int refuse_real_result(Op op, PyObject **args, PyObject *out) except -1:
    if args[0] == out and op.fixed_out == -2 and is_complex((<Tensor>out).tid):
        raise RuntimeError(f"In-place {op.title} is not supported for complex tensors: the result is real.")
    return 0


cdef Tensor _target(Op op, PyObject **args, Tensor out, Decision *p):
    """The tensor that the caller gave, where the loop may write straight into it, else None."""
    cdef int i
    cdef PyObject *o
    cdef bint inplace = args[0] == <PyObject *>out
    refuse_real_result(op, args, <PyObject *>out)
    if not check_target(op, out, p.device, p.shape, p.ndim, p.out_dtype, inplace):
        return None
    if out.device_id != 0:
        return out
    direct = out.tid == p.out_dtype
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if isinstance(<object>o, Tensor) and _disturbs(out, <Tensor>o):
            if (<Tensor>o).bits & CONTIGUOUS and out.bits & CONTIGUOUS and _ranges_meet(out, <Tensor>o):
                refuse_shared(op)
            direct = False
    return out if direct else None


cdef bint _ranges_meet(Tensor a, Tensor b) noexcept:
    return a.data < b.data + b.count * ITEMSIZE[b.tid] and b.data < a.data + a.count * ITEMSIZE[a.tid]


cdef inline int _wanted(Op op, int i, int dtype) noexcept:
    """dtype that the loop reads operand i in."""
    return TGX_BOOL if op.fixed_inputs & (1 << i) else dtype


cdef list _read(Op op, PyObject **args, Decision *p, bint large):
    """Operands as the loop wants them; the list, or None, of what has to live as long as it works."""
    cdef list kept = [] if large else None
    cdef int i, want
    cdef tgx_scalar s
    cdef PyObject *o
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        want = _wanted(op, i, p.dtype)
        if not isinstance(<object>o, Tensor):
            s = as_wide_scalar(<object>o) if want == TGX_U64 else as_scalar(<object>o)
            if op.refuses is not None and "outside" in op.refuses and not _within(&s, want, TGX_F64):
                _refuse_outside(op, op.refuses["outside"], <object>o, want)
            write_scalar(<char *>&p.numbers[2 * i], want, s.f, s.im, s.i)
            p.operands[i] = NULL
            continue
        if (<Tensor>o).tid != want:
            made = cast(<Tensor>o, want)
            if kept is None:
                kept = []
            kept.append(made)
            o = <PyObject *>made
        p.operands[i] = o
    return kept


cdef bint _holds(Op op, Decision *p, Tensor made) noexcept:
    """Whether the plan does still, after some tensor got another window."""
    cdef int i, k
    cdef Tensor t
    for i in range(op.ntensors):
        if p.operands[i] != NULL:
            t = <Tensor><object>p.operands[i]
            if t.tid != _wanted(op, i, p.dtype) or t.device_id != CPU or t.rank > p.ndim:
                return False
            for k in range(t.rank):
                if t.sizes[k] != 1 and t.sizes[k] != p.shape[p.ndim - t.rank + k]:
                    return False
    return made.tid == p.out_dtype and made.device_id == CPU and not made.bits & READONLY and has_sizes(made, p.shape, p.ndim)


cdef int _walk(Op op, tgx_loop loop, PyObject **operands, double *numbers, Tensor made, int dtype, const tgx_scalar *aux,
               list kept) except -1:
    """The loop over all elements; its code. kept: a list where the lock is let go."""
    cdef tgx_iter it
    cdef int64_t one = 1, still = 0
    cdef int i, code
    cdef Tensor t
    iter_begin(&it, made.sizes, made.rank)
    it.pure = True
    iter_add(&it, made.data, made.sizes, made.strides, made.rank, ITEMSIZE[made.tid])
    if made.count > GRAIN:
        kept.append(made.storage)
    for i in range(op.ntensors):
        if operands[i] == NULL:
            iter_add(&it, <char *>&numbers[2 * i], &one, &still, 1, ITEMSIZE[_wanted(op, i, dtype)])
            continue
        t = <Tensor>operands[i]
        iter_add(&it, t.data, t.sizes, t.strides, t.rank, ITEMSIZE[t.tid])
        if made.count > GRAIN:
            kept.append(t.storage)
    if it.numel <= GRAIN:
        return iter_run(&it, loop, aux)
    with nogil:
        code = iter_run(&it, loop, aux)
    return code


cdef int _walk_alike(Op op, tgx_loop loop, PyObject **args, double *numbers, Tensor made, int dtype, const tgx_scalar *aux) except -1:
    """The same for operands of the short way, whose windows differ."""
    cdef PyObject *operands[TGX_MAX_OPERANDS]
    cdef int i
    for i in range(op.ntensors):
        operands[i] = args[op.tensors[i]] if isinstance(<object>args[op.tensors[i]], Tensor) else NULL
    return _walk(op, loop, operands, numbers, made, dtype, aux, None)


set_pointwise(pointwise)
