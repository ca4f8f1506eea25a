# cython: language_level=3
"""Fused updates of optim/: one call for a whole parameter group, one pass over each parameter.

Every row is looked at before one is changed. A function returns False, with nothing changed, when some row is not
for it; optim/_fused.py then does the same in ops.
"""
from libc.math cimport pow, sqrt
from tinygrad_ext.core.iterate cimport GRAIN
from tinygrad_ext.core.places cimport note_mutation
from tinygrad_ext.core.parallel cimport parallel_for, range_fn
from tinygrad_ext.core.tensor cimport CONTIGUOUS, INFERENCE, READONLY, Tensor, alias, bump, exact
from tinygrad_ext.core.types cimport TGX_F32, TGX_F64

cdef extern from *:
    """
    #include "isa.h"
    #include "optim.h"
    static const tgx_optim_table *tgx_optim_loops;
    static void tgx_optim_choose(void) { tgx_optim_loops = TGX_PICK(tgx_optim); }
    """
    ctypedef struct tgx_sgd_job:
        char *param
        char *grad
        char *buf
        double lr, momentum, dampening, weight_decay
        int nesterov, maximize
    ctypedef struct tgx_adam_job:
        char *param
        char *grad
        char *mean
        char *square
        char *largest
        double beta1, beta2, eps, weight_decay, step_size, root, keep
        int maximize
    ctypedef struct tgx_optim_table:
        range_fn *sgd
        range_fn *adam
    const tgx_optim_table *tgx_optim_loops
    void tgx_optim_choose()

tgx_optim_choose()


cdef bint plain(object o) noexcept:
    """A dense CPU tensor of float32 or float64 that may be written to."""
    cdef Tensor t
    if not exact(o):
        return False
    t = <Tensor>o
    return (t.device_id == 0 and t.bits & CONTIGUOUS and not t.bits & (READONLY | INFERENCE) and t.storage is not None
            and not t.storage.readonly and (t.tid == TGX_F32 or t.tid == TGX_F64))


cdef bint fits(object o, Tensor param) noexcept:
    """A plain tensor in the dtype and shape of the parameter, with memory of its own."""
    cdef Tensor t
    cdef int i
    if not plain(o):
        return False
    t = <Tensor>o
    if t.tid != param.tid or t.rank != param.rank or (t.data == param.data and t.count):
        return False
    for i in range(t.rank):
        if t.sizes[i] != param.sizes[i]:
            return False
    return True


cdef int run(range_fn fn, void *job, Tensor param) except -1:
    if param.count <= GRAIN:
        fn(job, 0, param.count)
        return 0
    with nogil:
        parallel_for(fn, job, param.count, GRAIN)
    return 0


cdef int wrote(object o) except -1:
    bump(<Tensor>o)
    note_mutation(<Tensor>o)
    return 0


cdef list held(list tensors):
    """The large ones as aliases: while the GIL is let go, another thread may give a tensor other memory or another shape."""
    if tensors is None:
        return None
    return [alias(<Tensor>t) if exact(t) and (<Tensor>t).count > GRAIN else t for t in tensors]


cdef list gradients(list params):
    """The gradients, None for whatever is no tensor."""
    return held([(<Tensor>p).grad_ if isinstance(p, Tensor) else None for p in params])


def sgd_step(list params not None, list bufs, double lr, double momentum, double dampening, double weight_decay,
             bint nesterov, bint maximize):
    """Update of one group by stochastic gradient descent; see optim/_fused.py for the contract."""
    cdef Py_ssize_t row, n = len(params)
    cdef Tensor param
    cdef tgx_sgd_job job
    if bufs is not None and len(bufs) != n:
        return False
    grads, params, bufs = gradients(params), held(params), held(bufs)
    for row in range(n):
        if not plain(params[row]):
            return False
        param = <Tensor>params[row]
        if grads[row] is not None and not (fits(grads[row], param) and (bufs is None or fits(bufs[row], param))):
            return False
    job.lr, job.momentum, job.dampening, job.weight_decay = lr, momentum, dampening, weight_decay
    job.nesterov, job.maximize, job.buf = nesterov, maximize, NULL
    for row in range(n):
        param = <Tensor>params[row]
        if grads[row] is None:
            continue
        job.param, job.grad = param.data, (<Tensor>grads[row]).data
        if bufs is not None:
            job.buf = (<Tensor>bufs[row]).data
        run(tgx_optim_loops.sgd[param.tid == TGX_F64], &job, param)
        wrote(param)
        if bufs is not None:
            wrote(bufs[row])
    return True


cdef bint counts(object o) noexcept:
    """A step counter: one float32."""
    return plain(o) and (<Tensor>o).tid == TGX_F32 and (<Tensor>o).count == 1


def adam_step(list params not None, list exp_avgs not None, list exp_avg_sqs not None, list max_exp_avg_sqs,
              list steps not None, double lr, double beta1, double beta2, double eps, double weight_decay,
              bint decoupled, bint amsgrad, bint maximize):
    """Update of one group by Adam or AdamW; see optim/_fused.py for the contract."""
    cdef Py_ssize_t row, n = len(params)
    cdef Tensor param
    cdef tgx_adam_job job
    cdef float *step
    cdef double t, known = -1
    if len(exp_avgs) != n or len(exp_avg_sqs) != n or len(steps) != n or (amsgrad and (
            max_exp_avg_sqs is None or len(max_exp_avg_sqs) != n)):
        return False
    grads, params, steps = gradients(params), held(params), held(steps)
    exp_avgs, exp_avg_sqs, max_exp_avg_sqs = held(exp_avgs), held(exp_avg_sqs), held(max_exp_avg_sqs)
    for row in range(n):
        if not plain(params[row]):
            return False
        param = <Tensor>params[row]
        if grads[row] is not None and not (
                fits(grads[row], param) and fits(exp_avgs[row], param) and fits(exp_avg_sqs[row], param)
                and counts(steps[row]) and (not amsgrad or fits(max_exp_avg_sqs[row], param))):
            return False
    job.beta1, job.beta2, job.eps, job.maximize, job.largest = beta1, beta2, eps, maximize, NULL
    job.weight_decay = 0 if decoupled else weight_decay
    job.keep = 1 - lr * weight_decay if decoupled else 1
    for row in range(n):
        param = <Tensor>params[row]
        if grads[row] is None:
            continue
        step = <float *>(<Tensor>steps[row]).data
        step[0] += 1
        t = step[0]
        if t != known:        # the counters of a group are nearly always equal
            known = t
            job.step_size = lr / (1 - pow(beta1, t))
            job.root = sqrt(1 - pow(beta2, t))
        job.param, job.grad = param.data, (<Tensor>grads[row]).data
        job.mean, job.square = (<Tensor>exp_avgs[row]).data, (<Tensor>exp_avg_sqs[row]).data
        if amsgrad:
            job.largest = (<Tensor>max_exp_avg_sqs[row]).data
        run(tgx_optim_loops.adam[param.tid == TGX_F64], &job, param)
        for written in (param, exp_avgs[row], exp_avg_sqs[row], steps[row]):
            wrote(written)
        if amsgrad:
            wrote(max_exp_avg_sqs[row])
    return True
