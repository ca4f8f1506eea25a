# cython: language_level=3
"""Runs every pointwise op: promotion, broadcasting, output, loop.

The short way serves operands of one dtype and one contiguous shape and touches no Python object but the
result. The general way converts operands whose dtype differs from the computing dtype, puts numbers on the
stack as stride-0 operands, and walks them with the iterator.
"""
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from tinygrad_ext.core.loops.copy cimport cast, copy_into
from tinygrad_ext.core.data.boxed cimport as_scalar
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op, on_device, set_pointwise
from tinygrad_ext.core.data.dtype cimport CPU, META, default_id, device_of, dtype_of
from tinygrad_ext.core.call.held cimport hold, run_held
from tinygrad_ext.core.loops.iterate cimport GRAIN, iter_add, iter_begin, iter_run, tgx_iter
from tinygrad_ext.core.call.outputs cimport broadcast_shape, check_writable, prepare_out, refuse_cast
from tinygrad_ext.core.data.promotion cimport Promotion, promotion_add, promotion_begin, promotion_result
from tinygrad_ext.core.data.tensor cimport (
    CONTIGUOUS, Tensor, dtype_title, empty, empty_like, same_sizes, shape_text, write_scalar,
)
from tinygrad_ext.core.data.types cimport (
    A_SCALAR, ITEMSIZE, TGX_BAD_VALUE, TGX_BOOL, TGX_C64, TGX_F32, TGX_F64, TGX_I64, TGX_MAX_OPERANDS,
    TGX_NEGATIVE_POWER, TGX_ZERO_DIVISION, int64_t, is_complex, is_integral, is_mask, is_native_float, tgx_loop,
    tgx_scalar,
)

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
    better = ".long()" if op.loops[<int>TGX_F32] == NULL else ".float()"
    raise NotImplementedError(f'"{op.title}" not implemented for \'{dtype_title(dtype)}\': convert the argument first, '
                              f"for example with {better}")


cdef inline int _run(Op op, tgx_iter *it, tgx_loop loop, const tgx_scalar *aux) except -1:
    cdef int code
    if it.numel > GRAIN:
        with nogil:
            code = iter_run(it, loop, aux)
    else:
        code = iter_run(it, loop, aux)
    if code:
        raise_loop_error(code, op)
    return 0


include "pointwise_scalars.pxi"


cdef inline bint _number(PyObject *o, int dtype, char *slot) noexcept:
    """Put a Python number into a slot as an element of `dtype`; false when promotion has to look at it."""
    cdef int64_t i
    cdef int overflow = 0
    if PyFloat_CheckExact(<object>o):
        if not is_native_float(dtype):
            return False
        write_scalar(slot, dtype, PyFloat_AS_DOUBLE(<object>o), 0, 0)
        return True
    if not PyLong_CheckExact(<object>o) or dtype == TGX_BOOL or is_complex(dtype):
        return False
    i = PyLong_AsLongLongAndOverflow(<object>o, &overflow)
    if overflow:
        return False
    write_scalar(slot, dtype, <double>i, 0, i)
    return True


cdef object pointwise(Op op, PyObject **args, PyObject *out):
    """The short way: operands of one dtype and shape on the cpu, and Python numbers of that dtype."""
    cdef char *data[TGX_MAX_OPERANDS]
    cdef ptrdiff_t[TGX_MAX_OPERANDS] strides
    cdef double[2 * TGX_MAX_OPERANDS] numbers         # doubles, so that the slots are aligned
    cdef tgx_scalar[8] aux
    cdef PyObject *o
    cdef PyObject *first = NULL
    cdef Tensor result
    cdef int i, code, size, dtype, n = op.ntensors
    cdef bint flat = True
    for i in range(n):
        if isinstance(<object>args[op.tensors[i]], Tensor):
            first = args[op.tensors[i]]
            break
    if out != NULL or first == NULL or op.fixed_inputs or op.scalars_promote:
        return _general(op, args, out)
    dtype = (<Tensor>first).tid
    if op.loops[dtype] == NULL or (<Tensor>first).device_id != 0 or (<Tensor>first).count > GRAIN:
        return _general(op, args, out)
    size = ITEMSIZE[dtype]
    for i in range(n):
        o = args[op.tensors[i]]
        if isinstance(<object>o, Tensor):
            if (<Tensor>o).tid != dtype or (<Tensor>o).device_id != 0:
                return _general(op, args, out)
            if o != first and not same_sizes(<Tensor>o, <Tensor>first):
                return _general(op, args, out)
            data[i + 1] = (<Tensor>o).data
            strides[i + 1] = size
            if not (<Tensor>o).bits & CONTIGUOUS:
                if (<Tensor>o).rank == 1:
                    strides[i + 1] = (<Tensor>o).strides[0] * size
                else:
                    flat = False
        else:
            data[i + 1] = <char *>&numbers[2 * i]
            strides[i + 1] = 0
            if not _number(o, dtype, data[i + 1]):
                return _general(op, args, out)
    if op.nscalars:
        _read_scalars(op, args, aux, dtype)
    if (<Tensor>first).bits & CONTIGUOUS or (<Tensor>first).rank == 1:
        result = empty((<Tensor>first).sizes, (<Tensor>first).rank, _output(op, dtype), CPU)
    else:
        result = empty_like(<Tensor>first, _output(op, dtype))
    if not flat and not _one_window(op, args, result, strides):
        _walk(op, args, result, dtype, aux)
        return result
    data[0] = result.data
    strides[0] = ITEMSIZE[result.tid]
    code = op.loops[dtype](data, strides, (<Tensor>first).count, aux)
    if code:
        raise_loop_error(code, op)
    return result


cdef bint _one_window(Op op, PyObject **args, Tensor result, const ptrdiff_t *strides) noexcept:
    """Whether all tensors lie in memory as the dense result does, so that one run covers them."""
    cdef int i, k
    cdef PyObject *o
    for i in range(op.ntensors):
        if strides[i + 1] == 0:
            continue
        o = args[op.tensors[i]]
        for k in range(result.rank):
            if (<Tensor>o).strides[k] != result.strides[k] and result.sizes[k] != 1:
                return False
    return True


cdef object _general(Op op, PyObject **args, PyObject *out):
    """Whatever is not for the short way; with large operands the GIL is let go, see run_held."""
    cdef int i
    cdef PyObject *o
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if isinstance(<object>o, Tensor) and (<Tensor>o).count > GRAIN:
            return run_held(_mixture, op, args, out, False)
    return _mixture(op, args, out)


cdef object _mixture(Op op, PyObject **args, PyObject *out):
    """Any mixture of tensors, dtypes, layouts and numbers."""
    cdef Promotion p
    cdef int64_t[64] shape
    cdef int ndim = 0, i, dtype, out_dtype, device = 0
    cdef object o
    cdef bint on_cpu = False
    cdef Tensor t, result, model = None
    cdef tgx_scalar[8] aux
    promotion_begin(&p)
    _broadcast_all(op, args, shape, &ndim)
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if not op.fixed_inputs & (1 << i):
            promotion_add(&p, o)
        if isinstance(o, Tensor):
            t = <Tensor>o
            if t.device_id:
                device = max(device, t.device_id)
            elif t.rank:
                on_cpu = True
            if model is None and t.rank == ndim and not _differs(t, shape):
                model = t
    if device > META:
        return on_device(op, args, out)
    if device and (on_cpu or (model is not None and model.device_id == 0)):
        raise RuntimeError(f"{op.title}(): Tensor on device cpu is not on the expected device meta! Give all tensors one device; "
                           "only 0-dim tensors of the cpu go with tensors on meta.")
    if op.scalars_promote:
        for i in range(op.nscalars):
            promotion_add(&p, <object>args[op.scalars[i]])
    dtype = promotion_result(&p)
    if op.refuses is not None:
        _refuse(op, args, dtype)
    if op.to_float and is_integral(dtype):
        dtype = default_id()
    if op.bool_to_int and dtype == TGX_BOOL:
        dtype = TGX_I64
    out_dtype = _output(op, dtype)
    if out != NULL and out == args[0]:
        refuse_cast(out_dtype, (<Tensor><object>out).tid)
    if op.loops[dtype] == NULL:
        _no_loop(op, dtype)
    _read_scalars(op, args, aux, dtype)
    if out != NULL:
        if (<Tensor><object>out).device_id != device:
            raise RuntimeError(f"{op.title}(): Expected out tensor to have device {device_of(device)}, but got "
                               f"{device_of((<Tensor><object>out).device_id)} instead")
        return _into(op, args, <Tensor><object>out, shape, ndim, dtype, out_dtype, aux)
    if model is not None:
        result = empty_like(model, out_dtype)
    else:
        result = empty(shape, ndim, out_dtype, device)
    if device == 0:
        _walk(op, args, result, dtype, aux)
    return result


cdef object _into(Op op, PyObject **args, Tensor out, const int64_t *shape, int ndim, int dtype, int out_dtype,
                  const tgx_scalar *aux):
    """Write to a tensor the caller gave (in-place and out= forms)."""
    cdef Tensor result
    cdef int i
    cdef bint direct = out.tid == out_dtype
    cdef object o
    cdef bint inplace = args[0] == <PyObject *>out
    cdef PyObject *held[MAX_ARGS + 1]
    cdef list given, kept
    if inplace:
        if op.fixed_out == -2 and is_complex(dtype):
            raise RuntimeError(f"In-place {op.title} is not supported for complex tensors: the result is real.")
        if ndim != out.rank or _differs(out, shape):
            raise RuntimeError(f"output with shape {shape_text(out)} doesn't match the broadcast shape "
                               f"{[shape[i] for i in range(ndim)]}")
    elif ndim != out.rank or _differs(out, shape):
        given, kept = [], []
        hold(op, args, held, given, kept)       # out may be an input, and the warning runs code
        args = held
        prepare_out(out, shape, ndim, out_dtype)
    else:
        refuse_cast(out_dtype, out.tid)
    check_writable(out, op.title)
    if out.device_id != 0:
        return out
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if isinstance(o, Tensor) and _disturbs(out, <Tensor>o):
            if (<Tensor>o).bits & CONTIGUOUS and out.bits & CONTIGUOUS and _ranges_meet(out, <Tensor>o):
                raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer "
                                   "to a single memory location. Please clone() the tensor before performing the operation.")
            direct = False
    if direct:
        _walk(op, args, out, dtype, aux)
        return out
    result = empty(shape, ndim, out_dtype, CPU)
    _walk(op, args, result, dtype, aux)
    copy_into(out, result)
    return out


cdef bint _differs(Tensor t, const int64_t *shape) noexcept:
    cdef int i
    for i in range(t.rank):
        if t.sizes[i] != shape[i]:
            return True
    return False


cdef bint _ranges_meet(Tensor a, Tensor b) noexcept:
    return a.data < b.data + b.count * ITEMSIZE[b.tid] and b.data < a.data + a.count * ITEMSIZE[a.tid]


cdef int _walk(Op op, PyObject **args, Tensor result, int dtype, const tgx_scalar *aux) except -1:
    cdef tgx_iter it
    cdef double[2 * TGX_MAX_OPERANDS] numbers         # doubles, so that the slots are aligned
    cdef int64_t one = 1, still = 0
    cdef int i, want
    cdef tgx_scalar s
    cdef object o
    cdef Tensor t
    cdef list kept = None
    if result.count > GRAIN:        # the GIL will be let go: another thread may give a tensor other memory
        kept = [result.storage]
    iter_begin(&it, result.sizes, result.rank)
    iter_add(&it, result.data, result.sizes, result.strides, result.rank, ITEMSIZE[result.tid])
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        want = TGX_BOOL if op.fixed_inputs & (1 << i) else dtype
        if isinstance(o, Tensor):
            t = <Tensor>o
            if t.tid != want:
                t = cast(t, want)
                if kept is None:
                    kept = []
                kept.append(t)
            elif kept is not None:
                kept.append(t.storage)
            iter_add(&it, t.data, t.sizes, t.strides, t.rank, ITEMSIZE[want])
        else:
            s = as_scalar(o)
            write_scalar(<char *>&numbers[2 * i], want, s.f, s.im, s.i)
            iter_add(&it, <char *>&numbers[2 * i], &one, &still, 1, ITEMSIZE[want])
    return _run(op, &it, op.loops[dtype], aux)


set_pointwise(pointwise)
