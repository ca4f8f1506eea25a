# Single values of a tensor and checks that every op needs. Part of tensor.pyx.

cdef int wrap_dim_c(int64_t dim, int ndim) except -100:
    """Dimension number in [0, ndim); IndexError outside [-ndim, ndim-1]. A 0-d tensor counts as one dimension."""
    cdef int n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return <int>(dim + n if dim < 0 else dim)


cdef int wrap_dim(object dim, int ndim) except -100:
    return wrap_dim_c(<int64_t>dim, ndim)


cdef list _TITLES = [row.title for row in DTYPES]


cdef str dtype_title(int id):
    return _TITLES[id] if id < TGX_CODED else PAIR.title if id == TGX_C32 else dtype_of(id).name


cdef str shape_text(Tensor t):
    return "[" + ", ".join([str(t.sizes[i]) for i in range(t.rank)]) + "]"


cdef Tensor as_tensor_arg(object t, str op, str name):
    if not isinstance(t, Tensor):
        raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")
    return <Tensor>t


cdef bint may_overlap(Tensor t) noexcept:
    """True when two indices may address the same element (expanded dimensions, overlapping strides)."""
    cdef int i
    if t.bits & CONTIGUOUS:
        return False
    for i in range(t.rank):
        if t.strides[i] == 0 and t.sizes[i] > 1:
            return True
    return False


cdef int check_version_bounds(Tensor t) except -1:
    """The window lies inside its storage; a guard for as_strided and friends."""
    cdef int64_t lo = 0, hi = 0, room
    cdef int i
    if t.count == 0 or t.storage is None:
        return 0
    for i in range(t.rank):
        if t.strides[i] < 0:
            lo += (t.sizes[i] - 1) * t.strides[i]
        else:
            hi += (t.sizes[i] - 1) * t.strides[i]
    room = ITEMSIZE[t.tid]
    if t.data + lo * room < t.storage.data or t.data + (hi + 1) * room > t.storage.data + t.storage.nbytes:
        raise RuntimeError(f"setStorage: sizes {shape_text(t)}, strides {[t.strides[i] for i in range(t.rank)]} are "
                           f"out of bounds for storage of size {t.storage.nbytes} bytes")
    return 0


cdef void write_scalar(char *p, int dtype, double f, double im, int64_t i) noexcept:
    """Store one number: `f`, `im` for floating and complex dtypes, `i` for integers and bool."""
    if dtype == TGX_F32:
        (<float *>p)[0] = <float>f
    elif dtype == TGX_F64:
        (<double *>p)[0] = f
    elif dtype == TGX_I64:
        (<int64_t *>p)[0] = i
    elif dtype == TGX_BOOL:
        (<uint8_t *>p)[0] = i != 0
    elif dtype == TGX_I32:
        (<int32_t *>p)[0] = <int32_t>i
    elif dtype == TGX_U8:
        (<uint8_t *>p)[0] = <uint8_t>i
    elif dtype == TGX_I8:
        (<int8_t *>p)[0] = <int8_t>i
    elif dtype == TGX_U16:
        (<uint16_t *>p)[0] = <uint16_t>i
    elif dtype == TGX_U32:
        (<uint32_t *>p)[0] = <uint32_t>i
    elif dtype == TGX_U64:
        (<uint64_t *>p)[0] = <uint64_t>i
    elif dtype == TGX_I16:
        (<int16_t *>p)[0] = <int16_t>i
    elif dtype == TGX_F16:
        (<uint16_t *>p)[0] = tgx_f32_to_f16(<float>f)
    elif dtype == TGX_BF16:
        (<uint16_t *>p)[0] = tgx_f32_to_bf16(<float>f)
    elif dtype == TGX_C64:
        (<float *>p)[0] = <float>f
        (<float *>p)[1] = <float>im
    elif dtype == TGX_C128:
        (<double *>p)[0] = f
        (<double *>p)[1] = im
    else:
        coded_put(p, dtype, f, im)


cdef str flips_words(Tensor t):
    """What messages call the bit that t has."""
    return "conjugate" if flips_of(t.device_id) & 1 else "negative"


cdef object read_scalar(const char *p, int dtype):
    if dtype == TGX_F32:
        return (<float *>p)[0]
    if dtype == TGX_F64:
        return (<double *>p)[0]
    if dtype == TGX_I64:
        return (<int64_t *>p)[0]
    if dtype == TGX_BOOL:
        return (<uint8_t *>p)[0] != 0
    if dtype == TGX_I32:
        return (<int32_t *>p)[0]
    if dtype == TGX_U8:
        return (<uint8_t *>p)[0]
    if dtype == TGX_I8:
        return (<int8_t *>p)[0]
    if dtype == TGX_U16:
        return (<uint16_t *>p)[0]
    if dtype == TGX_U32:
        return (<uint32_t *>p)[0]
    if dtype == TGX_U64:
        return (<uint64_t *>p)[0]
    if dtype == TGX_I16:
        return (<int16_t *>p)[0]
    if dtype == TGX_F16:
        return tgx_f16_to_f32((<uint16_t *>p)[0])
    if dtype == TGX_BF16:
        return tgx_bf16_to_f32((<uint16_t *>p)[0])
    if dtype == TGX_C64:
        return PyComplex_FromDoubles((<float *>p)[0], (<float *>p)[1])
    if dtype == TGX_C128:
        return PyComplex_FromDoubles((<double *>p)[0], (<double *>p)[1])
    return coded_get(p, dtype)
