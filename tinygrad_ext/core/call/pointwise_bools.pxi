# Elements that are true or false, beside numbers, for a loop over another dtype. Part of pointwise.pyx.

cdef enum:
    ASKED_TWICE = 64        # elements from which two results and a choice cost less than a conversion and the loop


cdef Op _of_bools(Op op, PyObject **args, Decision *p, int64_t count):
    """The op that chooses between the two results there are, of which `p` becomes the plan; None where that is no way to go."""
    cdef double[2 * TGX_MAX_OPERANDS] numbers
    cdef double[4] pair, results
    cdef char *data[TGX_MAX_OPERANDS]
    cdef ptrdiff_t[TGX_MAX_OPERANDS] strides
    cdef PyObject *flags = NULL
    cdef PyObject *o
    cdef tgx_scalar s
    cdef Op chooses
    cdef int i, size = ITEMSIZE[p.dtype]
    if count < ASKED_TWICE or op.fixed_inputs or size > 8 or ITEMSIZE[p.out_dtype] > 8 or op.refuses is not None:
        return None
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if isinstance(<object>o, Tensor):
            if flags != NULL or (<Tensor>o).tid != TGX_BOOL or p.dtype == TGX_BOOL:
                return None
            flags = o
            data[i + 1], strides[i + 1] = <char *>pair, size
        else:
            s = as_scalar(<object>o)
            write_scalar(<char *>&numbers[2 * i], p.dtype, s.f, s.im, s.i)
            data[i + 1], strides[i + 1] = <char *>&numbers[2 * i], 0
    if flags == NULL:
        return None
    write_scalar(<char *>pair, p.dtype, 0, 0, 0)
    write_scalar(<char *>pair + size, p.dtype, 1, 0, 1)
    data[0], strides[0] = <char *>results, ITEMSIZE[p.out_dtype]
    if p.loop(data, strides, 2, p.aux):
        return None
    for i in range(2):
        memcpy(&p.numbers[2 * (2 - i)], <char *>results + i * strides[0], strides[0])
    chooses = <Op>_ops["aten::where.self"]
    p.operands[0], p.operands[1], p.operands[2] = flags, NULL, NULL
    p.dtype, p.loop = p.out_dtype, chooses.loops[p.out_dtype]
    return chooses
