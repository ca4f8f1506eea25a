# cython: language_level=3
"""Runs a pointwise loop over strided operands, cut over threads along the widest dimension when it is large.

A part of one dimension is again a plain walk. Rejected: cutting the count of elements into equal ranges, which begin
and end inside rows, so that the loop for whole rows would serve neither end.
"""
from tinygrad_ext.core.loops.parallel cimport parallel_for

cdef extern from "iterate.h" nogil:
    void tgx_iter_begin(tgx_iter *it, const int64_t *shape, int ndim)
    void tgx_iter_add(tgx_iter *it, char *data, const int64_t *shape, const int64_t *strides, int ndim, int itemsize)
    void tgx_iter_plan(tgx_iter *it)
    int tgx_iter_run(const tgx_iter *it, tgx_loop loop, const tgx_scalar *aux)
    int tgx_iter_widest(const tgx_iter *it)
    void tgx_iter_slice(const tgx_iter *it, tgx_iter *out, int dim, int64_t lo, int64_t hi)

cdef extern from "casts.h" nogil:
    void tgx_use_casts(const tgx_casts *)

cdef struct Job:
    tgx_iter *it
    tgx_loop loop
    const tgx_scalar *aux
    int dim


cdef void use_casts(const tgx_casts *casts) noexcept:
    tgx_use_casts(casts)


cdef void iter_begin(tgx_iter *it, const int64_t *shape, int ndim) noexcept nogil:
    tgx_iter_begin(it, shape, ndim)


cdef void iter_add(tgx_iter *it, char *data, const int64_t *shape, const int64_t *strides, int ndim, int itemsize) noexcept nogil:
    tgx_iter_add(it, data, shape, strides, ndim, itemsize)


cdef int _slice(void *ctx, ptrdiff_t lo, ptrdiff_t hi) noexcept nogil:
    cdef Job *job = <Job *>ctx
    cdef tgx_iter part
    tgx_iter_slice(job.it, &part, job.dim, lo, hi)
    return tgx_iter_run(&part, job.loop, job.aux)


cdef int iter_run(tgx_iter *it, tgx_loop loop, const tgx_scalar *aux) noexcept nogil:
    """Plan and run; 0 or the loop's error code."""
    cdef Job job
    cdef ptrdiff_t per_step
    tgx_iter_plan(it)
    if it.numel <= GRAIN:
        return tgx_iter_run(it, loop, aux)
    job.it, job.loop, job.aux = it, loop, aux
    job.dim = tgx_iter_widest(it)
    per_step = it.numel // it.shape[job.dim]
    return parallel_for(_slice, &job, it.shape[job.dim], 1 + GRAIN // per_step)


cdef int iter_run_serial(tgx_iter *it, tgx_loop loop, const tgx_scalar *aux) noexcept nogil:
    """Plan and run without cutting; 0 or the loop's error code."""
    tgx_iter_plan(it)
    return tgx_iter_run(it, loop, aux)
