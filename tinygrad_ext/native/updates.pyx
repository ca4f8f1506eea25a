# cython: language_level=3
"""Fused updates of optim/: which rows have a gradient, and whether the kernels of kernels/optim.c take them.

A function returns False, with nothing changed, when some row is not for the kernel; optim/_fused.py then does the same in
ops. The calls go past levels and history: to both, the update of a group is one operation, see optim/_fused.py.

Rejected: records for the two updates. They have no result and no derivative, and nobody calls them by name.
"""
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.call.dispatch cimport Op, forward
from tinygrad_ext.core.data.tensor cimport INFERENCE, READONLY, Tensor, exact
from tinygrad_ext.core.data.types cimport A_BOOL, A_FLOAT, A_TENSOR, F_LIST

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(object o, Py_ssize_t i)


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


cdef inline bint _ours(PyObject *o) noexcept:
    """A tensor itself, in memory here that may be written to."""
    cdef Tensor t
    if not exact(<object>o):
        return False
    t = <Tensor>o
    return t.device_id == 0 and not t.bits & (READONLY | INFERENCE) and t.storage is not None and not t.storage.readonly


cdef tuple _gradients(tuple params, bint *all_have):
    """The gradient of each parameter, None where there is none; None in all when a parameter or gradient is not ours."""
    cdef Py_ssize_t row, n = len(params)
    cdef tuple grads = PyTuple_New(n)
    cdef PyObject *grad
    all_have[0] = True
    for row in range(n):
        if not _ours(PyTuple_GET_ITEM(params, row)):
            return None
        grad = <PyObject *>(<Tensor>PyTuple_GET_ITEM(params, row)).grad_
        if grad == <PyObject *>None:
            all_have[0] = False
        elif not _ours(grad):
            return None
        Py_INCREF(<object>grad)
        PyTuple_SET_ITEM(grads, row, <object>grad)
    return grads


cdef bint _all_ours(tuple tensors, tuple grads) noexcept:
    """Whether those rows of a list of state are ours that have a gradient."""
    cdef Py_ssize_t row
    for row in range(len(grads)):
        if PyTuple_GET_ITEM(grads, row) != <PyObject *>None and not _ours(PyTuple_GET_ITEM(tensors, row)):
            return False
    return True


cdef tuple _with_gradients(tuple tensors, tuple grads):
    return None if tensors is None else tuple([tensors[row] for row in range(len(grads)) if grads[row] is not None])


cdef bint _update_group(Op op, int nlists, PyObject **args) except -1:
    """Run an update. Its first arguments are the list of parameters, room for their gradients, and lists of state or NULL.

    The lists go on as tuples, which stay as they were looked at.
    """
    cdef bint all_have
    cdef int i
    cdef tuple params = tuple(<list>args[0]), grads = _gradients(params, &all_have), tensors, rows = PyTuple_New(nlists)
    if grads is None:
        return False
    for i in range(nlists):
        tensors = params if i == 0 else grads if i == 1 else None if args[i] == NULL else tuple(<list>args[i])
        if i > 1 and tensors is not None and not (len(tensors) == len(grads) and _all_ours(tensors, grads)):
            return False
        if not all_have:
            tensors = _with_gradients(tensors, grads)
        args[i] = <PyObject *>tensors
        Py_INCREF(tensors)
        PyTuple_SET_ITEM(rows, i, tensors)
    try:
        forward(op, args)
    except NotImplementedError:     # dtypes, shapes or layouts that the loops do not take
        return False
    return True


cdef PyObject *_list(list tensors) noexcept:
    return NULL if tensors is None else <PyObject *>tensors


cdef inline object _number(object o):
    """An option as a number that nobody else's code converts, while the rows are looked at."""
    return o if PyFloat_CheckExact(o) or PyLong_CheckExact(o) else <double>o


def sgd_step(list params not None, list bufs, lr, momentum, dampening, weight_decay, nesterov, maximize):
    """Update of one group by stochastic gradient descent; see optim/_fused.py for the contract."""
    cdef PyObject *args[9]
    lr, momentum, dampening, weight_decay = _number(lr), _number(momentum), _number(dampening), _number(weight_decay)
    nesterov, maximize = bool(nesterov), bool(maximize)
    args[:] = [<PyObject *>params, NULL, _list(bufs), <PyObject *>lr, <PyObject *>momentum, <PyObject *>dampening,
               <PyObject *>weight_decay, <PyObject *>nesterov, <PyObject *>maximize]
    return _update_group(_sgd, 3, args)


def adam_step(list params not None, list exp_avgs not None, list exp_avg_sqs not None, list max_exp_avg_sqs,
              list steps not None, lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize):
    """Update of one group by Adam or AdamW; see optim/_fused.py for the contract."""
    cdef PyObject *args[13]
    lr, beta1, beta2, eps, weight_decay = _number(lr), _number(beta1), _number(beta2), _number(eps), _number(weight_decay)
    decoupled, maximize = bool(decoupled), bool(maximize)
    if not amsgrad:
        max_exp_avg_sqs = None
    elif max_exp_avg_sqs is None:
        return False
    args[:] = [<PyObject *>params, NULL, <PyObject *>exp_avgs, <PyObject *>exp_avg_sqs, _list(max_exp_avg_sqs), <PyObject *>steps,
               <PyObject *>lr, <PyObject *>beta1, <PyObject *>beta2, <PyObject *>eps, <PyObject *>weight_decay,
               <PyObject *>decoupled, <PyObject *>maximize]
    return _update_group(_adam, 6, args)
