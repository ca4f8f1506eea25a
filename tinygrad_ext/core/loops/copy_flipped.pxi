# To and from tensors whose elements are read with their signs flipped: conjugate and negative views. Part of copy.pyx.

cdef int _copy_flipped(Tensor dst, Tensor src) except -1:
    """copy_into where one of both has the conjugate or the negative bit."""
    cdef Tensor between
    cdef int flips = flips_of(dst.device_id) ^ flips_of(src.device_id)
    if dst.device_id == META or src.device_id == META or same_window(dst, src):
        return 0
    if dst.storage is src.storage or (flips_of(src.device_id) and dst.tid != src.tid) or not is_host(dst.device_id):
        return copy_into(dst, clone(src))
    if dst.tid == src.tid and is_host(src.device_id):
        return _flip(lying(dst), lying(src), flips)
    between = empty(src.sizes, src.rank, dst.tid, CPU)
    between.device_id = device_for(dst.tid, CPU)
    copy_into(between, src)
    return _flip(lying(dst), between, flips_of(dst.device_id))


cdef Tensor lying(Tensor t):
    """The elements as they lie in memory, without the bits."""
    cdef Tensor bare = alias(t)
    bare.device_id = device_for(t.tid, t.device_id)
    return bare


cdef int _flip(Tensor dst, Tensor src, int flips) except -1:
    cdef tgx_iter it
    cdef tgx_scalar aux
    cdef tgx_loop loop = tgx_flip_loop(dst.tid)
    if not flips:
        return copy_into(dst, src)
    aux.f, aux.im, aux.i, aux.given = 0, 0, flips, 0
    _held = dst.storage, src.storage
    iter_begin(&it, dst.sizes, dst.rank)
    iter_add(&it, dst.data, dst.sizes, dst.strides, dst.rank, ITEMSIZE[dst.tid])
    iter_add(&it, src.data, src.sizes, src.strides, src.rank, ITEMSIZE[src.tid])
    if it.numel <= GRAIN:
        return iter_run(&it, loop, &aux)
    with nogil:
        iter_run(&it, loop, &aux)
    return 0
