# To and from the dtypes that no kernel computes in, and between two of them by those that kernels do. Part of copy.pyx.

cdef int _copy_coded(Tensor dst, Tensor src) except -1:
    """copy_into where one of both is of a plugin's dtype. Codes of one dtype are moved as they are."""
    cdef Tensor between
    if dst.device_id == META or src.device_id == META:
        return 0
    if dst.tid == src.tid:
        return copy_into(bits_of(dst), bits_of(src))
    if dst.storage is src.storage:
        src = clone(src)
    if src.device_id == CODED and dst.device_id == CPU and dst.tid == wide_of(src.tid):
        return _convert(dst, src, src.tid, True)
    if dst.device_id == CODED and src.device_id == CPU and src.tid == wide_of(dst.tid):
        return _convert(dst, src, dst.tid, False)
    between = empty(src.sizes, src.rank, wide_of(src.tid if src.device_id == CODED else dst.tid), CPU)
    copy_into(between, src)
    return copy_into(dst, between)


cdef int _convert(Tensor dst, Tensor src, int coded, bint widens) except -1:
    cdef tgx_iter it
    cdef tgx_scalar aux
    cdef Row row = None
    cdef tgx_loop loop = tgx_pairs_widen if widens else tgx_pairs_narrow
    if coded != TGX_C32:
        row = row_of(coded)
        aux, loop = aux_of(row), tgx_coded_widen if widens else tgx_coded_narrow
    _held = dst.storage, src.storage
    iter_begin(&it, dst.sizes, dst.rank)
    iter_add(&it, dst.data, dst.sizes, dst.strides, dst.rank, ITEMSIZE[dst.tid])
    iter_add(&it, src.data, src.sizes, src.strides, src.rank, ITEMSIZE[src.tid])
    if it.numel <= GRAIN:
        return iter_run(&it, loop, &aux)
    with nogil:
        iter_run(&it, loop, &aux)
    return 0


cdef Tensor bits_of(Tensor t):
    """The codes of a tensor as integers, in the same memory."""
    cdef Tensor bits = alias(t)
    bits.tid = TGX_I8 if ITEMSIZE[t.tid] == 1 else TGX_I16 if ITEMSIZE[t.tid] == 2 else TGX_I32
    bits.device_id = CPU if t.device_id == CODED else t.device_id
    return bits


cdef Tensor of_bits(Tensor t, int dtype):
    """Integers as the codes of a dtype, in the same memory."""
    cdef Tensor made = alias(t)
    made.tid, made.device_id = dtype, device_for(dtype, t.device_id)
    return made
