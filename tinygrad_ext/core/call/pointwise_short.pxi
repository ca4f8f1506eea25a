# The short way: operands of one dtype and shape, and Python numbers of that dtype. Part of pointwise.pyx.

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
    if overflow or not fits(i, dtype):
        return False
    write_scalar(slot, dtype, <double>i, 0, i)
    return True


cdef enum:
    REPEATED = 64          # times that one element is cheaper to fill with than to compute


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
    cdef uint64_t before = geometry_changes
    cdef bint flat = True
    cdef tgx_loop loop
    for i in range(n):
        if is_tensor(args[op.tensors[i]]):
            first = args[op.tensors[i]]
            break
    if first == NULL or op.fixed_inputs or op.scalars_promote or (out != NULL and not _takes_result(op, args, <Tensor>out)):
        return _mixture(op, args, out)
    dtype = (<Tensor>first).tid
    if (<Tensor>first).device_id != 0 or op.loops[dtype] == NULL or (<Tensor>first).count > GRAIN:
        return _mixture(op, args, out)
    size = ITEMSIZE[dtype]
    loop = op.loops[dtype]
    for i in range(n):
        o = args[op.tensors[i]]
        if is_tensor(o):
            if (<Tensor>o).tid != dtype or (<Tensor>o).device_id != 0:
                return _mixture(op, args, out)
            if o != first and not same_sizes(<Tensor>o, <Tensor>first):
                return _mixture(op, args, out)
            data[i + 1] = (<Tensor>o).data
            strides[i + 1] = size
            if not (<Tensor>o).bits & CONTIGUOUS:
                if (<Tensor>o).rank == 1:
                    if (<Tensor>o).strides[0] == 0 and (<Tensor>o).count >= REPEATED:
                        return _mixture(op, args, out)      # which fills
                    strides[i + 1] = (<Tensor>o).strides[0] * size
                else:
                    flat = False
        else:
            data[i + 1] = <char *>&numbers[2 * i]
            strides[i + 1] = 0
            if not _number(o, dtype, data[i + 1]):
                return _mixture(op, args, out)
            if i and is_half(dtype) and n == 2 and loop_by_number(op, dtype) != NULL:
                loop, aux[0] = loop_by_number(op, dtype), as_scalar(<object>o)
    _read_scalars(op, args, aux, dtype)
    if out != NULL:
        result = <Tensor>out
    elif (<Tensor>first).bits & CONTIGUOUS or (<Tensor>first).rank == 1:
        result = empty((<Tensor>first).sizes, (<Tensor>first).rank, _output(op, dtype), CPU)
    else:
        result = empty_like(<Tensor>first, _output(op, dtype))
    if before != geometry_changes:      # a finalizer ran, or a number's own code: the addresses may be of nothing
        return _mixture(op, args, out)
    if not flat and not _one_window(op, args, result, strides):
        code = _walk_alike(op, loop, args, numbers, result, dtype, aux)
    else:
        data[0] = result.data
        strides[0] = ITEMSIZE[result.tid]
        code = loop(data, strides, (<Tensor>first).count, aux)
    if code:
        if out != NULL:                 # what was written by then stays
            note_write(result)
        raise_loop_error(code, op)
    return result


cdef bint _takes_result(Op op, PyObject **args, Tensor out) noexcept:
    """Whether the loop may write into `out` at once: it is self, laid out and typed as the result, and no other operand
    has a part of its memory."""
    cdef int i
    cdef PyObject *o
    if args[0] != <PyObject *>out or out.bits & (CONTIGUOUS | READONLY) != CONTIGUOUS or _output(op, out.tid) != out.tid:
        return False
    for i in range(1, op.ntensors):
        o = args[op.tensors[i]]
        if o != <PyObject *>out and isinstance(<object>o, Tensor) and (
                not (<Tensor>o).bits & CONTIGUOUS or (<Tensor>o).storage is out.storage):
            return False
    return True


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
