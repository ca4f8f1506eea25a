# The scalar arguments of a pointwise op: read for a loop, checked, refused. Part of pointwise.pyx.

cdef int _choice(Op op, str name, str word) except -1:
    """Number of a str argument's word."""
    words = op.choices[name]
    if word not in words:
        raise RuntimeError(f"{op.title}(): {name} argument must be either {' or '.join(words)}, got '{word}'")
    return words.index(word)


cdef int _check_scalar(Op op, str name, object o, int dtype) except -1:
    """A scalar argument must fit the dtype the op is computed in."""
    if is_integral(dtype) and isinstance(o, (float, complex)) and not op.to_float:
        raise RuntimeError(f"{op.title}(): For integral input tensors, argument {name} must not be a floating point number. "
                           f"It is {o!r} and the operands are {dtype_title(dtype)}; give an int, or floating tensors.")
    if dtype != TGX_BOOL and isinstance(o, bool) and name == "alpha":
        raise RuntimeError(f"{op.title}(): Boolean alpha only supported for Boolean results. The operands are "
                           f"{dtype_title(dtype)}; give a number.")
    if isinstance(o, complex) and not is_complex(dtype):
        raise RuntimeError(f"{op.title}(): For non-complex input tensors, argument {name} must not be a complex number.")
    return 0


cdef bint fits(int64_t i, int dtype) noexcept:
    """Whether an integer is an element of an integral dtype; negative ones wrap in unsigned dtypes."""
    cdef int64_t most
    if not is_integral(dtype) or dtype == TGX_BOOL or ITEMSIZE[dtype] == 8:
        return True
    most = (<int64_t>1 << (8 * ITEMSIZE[dtype] - is_signed(dtype))) - 1
    return -most - is_signed(dtype) <= i <= most


cdef bint _within(const tgx_scalar *s, int dtype, int wide) noexcept:
    """Whether loops of a dtype take a number; wide: the dtype that holds those of halves."""
    if is_integral(dtype):
        return fits(s.i, dtype) and (s.given != TGX_ABOVE or dtype == TGX_U64)
    return near_enough(s, wide if ITEMSIZE[dtype] == 2 else dtype)


cdef bint _is_element(Op op, int i):
    """Whether a number is made an element of the dtype; others beside halves are numbers of float32."""
    cdef str name = <object>op.args[op.scalars[i]].name
    return name == "min" or name == "max" or (name == "alpha" and op.ntensors == 2)


cdef int _refuse_outside(Op op, str what, object o, int dtype) except -1:
    raise RuntimeError(f"{op.title}(): value cannot be converted to type {str(dtype_of(dtype))[6:]} without overflow: {what} is {o!r}; "
                       "convert the tensor to a wider dtype first")


cdef int _refuse(Op op, PyObject **args, int dtype) except -1:
    """The error for operands of a kind that the record names in `refuses`."""
    cdef int i, first = -1
    if "int" in op.refuses and is_integral(dtype):
        raise RuntimeError(op.refuses["int"])
    if "complex" in op.refuses and is_complex(dtype):
        raise RuntimeError(op.refuses["complex"])
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if "bool" in op.refuses and (isinstance(o, bool) or (isinstance(o, Tensor) and (<Tensor>o).tid == TGX_BOOL)):
            raise RuntimeError(op.refuses["bool"])
        if not isinstance(o, Tensor):
            continue
        if op.fixed_inputs & (1 << i):
            if "inputs" in op.refuses and not is_mask((<Tensor>o).tid):
                raise RuntimeError(f"{op.refuses['inputs']}. It is {dtype_of((<Tensor>o).tid)}.")
        elif first < 0:
            first = (<Tensor>o).tid
        elif first != (<Tensor>o).tid and "mixed" in op.refuses:
            raise RuntimeError(f"{op.refuses['mixed']}: expected dtype {dtype_of(first)}, got {dtype_of((<Tensor>o).tid)} for "
                               f"{<object>op.args[op.tensors[i]].name}")
    return 0


cdef int _output(Op op, int dtype) noexcept:
    """dtype of the result of an op computed in `dtype`."""
    if op.fixed_out >= 0:
        return op.fixed_out
    if op.fixed_out == -2 and is_complex(dtype):
        return TGX_F32 if dtype == TGX_C64 else TGX_F64
    return dtype


cdef object ONE = 1


cdef inline int _read_scalars(Op op, PyObject **args, tgx_scalar *aux, int dtype) except -1:
    if op.nscalars == 1 and args[op.scalars[0]] == <PyObject *>ONE:         # nearly always the default, as alpha=1 is
        aux[0].f, aux[0].im, aux[0].i, aux[0].given = 1.0, 0.0, 1, 1
        return 0
    return _read_each(op, args, aux, dtype) if op.nscalars else 0


cdef int _read_each(Op op, PyObject **args, tgx_scalar *aux, int dtype) except -1:
    cdef int i
    cdef object o
    for i in range(op.nscalars):
        o = <object>args[op.scalars[i]]
        if type(o) is str:
            aux[i].i = _choice(op, <object>op.args[op.scalars[i]].name, o)
            continue
        aux[i] = as_scalar(o)
        if op.args[op.scalars[i]].kind == A_SCALAR and not (op.scalars_promote or op.cut_scalars) and op.fixed_out == -1:
            _check_scalar(op, <object>op.args[op.scalars[i]].name, o, dtype)
        # a number in the place of self is an operand, which wraps
        if op.scalars[i] > 0 and op.args[op.scalars[i]].kind == A_SCALAR and op.fixed_out == -1 and not _within(
                &aux[i], dtype, dtype if ITEMSIZE[dtype] != 2 or _is_element(op, i) else TGX_F32) \
                and (is_integral(dtype) or <object>op.args[op.scalars[i]].name != "exponent"):
            _refuse_outside(op, f"argument {<object>op.args[op.scalars[i]].name}", o, dtype)
    if op.nscalars == 2 and op.refuses is not None and "crossed" in op.refuses:
        _check_limits(op, <object>args[op.scalars[0]], <object>args[op.scalars[1]])
    if op.nscalars == 1 and op.refuses is not None and "beyond" in op.refuses:
        _check_reach(op, <object>args[op.scalars[0]], dtype)
    return 0


cdef int _check_reach(Op op, object value, int dtype) except -1:
    most = finfo(dtype_of(dtype)).max
    if not 0 <= value <= most:
        raise RuntimeError(f"{op.refuses['beyond']} must be in range [0, {most:g}] for input dtype {dtype_title(dtype)}, but found "
                           f"{value}")
    return 0


cdef int _check_limits(Op op, object low, object high) except -1:
    if low > high:
        raise ValueError(f"{op.refuses['crossed']}: got {low} and {high}")
    return 0
