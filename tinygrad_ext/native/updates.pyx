# cython: language_level=3
"""Fused updates of optim/: which rows have a gradient, and whether the kernels of kernels/optim.c take them.

A function returns False, with nothing changed, when some row is not for the kernel; optim/_fused.py then does the same in
ops. The calls go past levels and history: to both, the update of a group is one operation, see optim/_fused.py.

Rejected: records for the two updates. They have no result and no derivative, and nobody calls them by name.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op, forward
from tinygrad_ext.core.data.tensor cimport INFERENCE, READONLY, Tensor, exact
from tinygrad_ext.core.data.types cimport A_BOOL, A_FLOAT, A_TENSOR, F_LIST


cdef Op _update(str title, str kernel, str lists, str numbers, str switches):
    """An Op of lists of tensors, numbers and switches, which no table holds."""
    rows = [(name, A_TENSOR, F_LIST, 0, None) for name in lists.split()]
    rows += [(name, A_FLOAT, 0, 0, None) for name in numbers.split()]
    rows += [(name, A_BOOL, 0, 0, None) for name in switches.split()]
    cdef Op op = Op(f"optim::{title}", title, None, None, rows, 0)
    op.set_kernel(kernel, False)
    return op


cdef Op _sgd = _update("sgd", "sgd_step", "params grads bufs", "lr momentum dampening weight_decay", "nesterov maximize")
cdef Op _adam = _update("adam", "adam_step", "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs steps",
                        "lr beta1 beta2 eps weight_decay", "decoupled maximize")


cdef bint _ours(object o) noexcept:
    """A tensor itself, in memory here that may be written to."""
    cdef Tensor t
    if not exact(o):
        return False
    t = <Tensor>o
    return t.device_id == 0 and not t.bits & (READONLY | INFERENCE) and t.storage is not None and not t.storage.readonly


cdef list _rows(list params, list lists):
    """The lists, gradients among them, without the rows that have none; None when some row is not ours."""
    cdef list grads = [], tensors
    cdef bint all_have = True
    cdef Py_ssize_t row, n = len(params)
    for row in range(n):
        if not _ours(params[row]):
            return None
        grad = (<Tensor>params[row]).grad_
        if grad is None:
            all_have = False
        elif not _ours(grad):
            return None
        grads.append(grad)
    for tensors in lists:
        if tensors is not None:
            for row in range(n):
                if grads[row] is not None and not _ours(tensors[row]):
                    return None
    found = [params, grads, *lists]
    return found if all_have else [_with_gradients(tensors, grads) for tensors in found]


cdef list _with_gradients(list tensors, list grads):
    return None if tensors is None else [tensors[row] for row in range(len(grads)) if grads[row] is not None]


cdef bint _call(Op op, list tensors, tuple options) except -1:
    cdef PyObject *args[MAX_ARGS + 1]
    cdef int i
    if tensors is None:
        return False
    for i in range(len(tensors)):
        args[i] = <PyObject *>tensors[i]
    for i in range(len(options)):
        args[len(tensors) + i] = <PyObject *>options[i]
    try:
        forward(op, args, NULL)
    except NotImplementedError:     # dtypes, shapes or layouts that the loops do not take
        return False
    return True


def sgd_step(list params not None, list bufs, double lr, double momentum, double dampening, double weight_decay,
             bint nesterov, bint maximize):
    """Update of one group by stochastic gradient descent; see optim/_fused.py for the contract."""
    if bufs is not None and len(bufs) != len(params):
        return False
    return _call(_sgd, _rows(params, [bufs]), (lr, momentum, dampening, weight_decay, nesterov, maximize))


def adam_step(list params not None, list exp_avgs not None, list exp_avg_sqs not None, list max_exp_avg_sqs,
              list steps not None, double lr, double beta1, double beta2, double eps, double weight_decay,
              bint decoupled, bint amsgrad, bint maximize):
    """Update of one group by Adam or AdamW; see optim/_fused.py for the contract."""
    cdef list tensors, lists = [exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else None, steps]
    if amsgrad and max_exp_avg_sqs is None:
        return False
    for tensors in lists:
        if tensors is not None and len(tensors) != len(params):
            return False
    return _call(_adam, _rows(params, lists), (lr, beta1, beta2, eps, weight_decay, decoupled, maximize))
