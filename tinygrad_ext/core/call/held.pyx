# cython: language_level=3
"""Running a kernel on aliases of its tensors, which keep memory, sizes and strides as they are when it begins.

For pointwise ops and boxed kernels; the caller of kernels in C does the same with its own (kernel_arguments.pxi).

The tensors themselves may change meanwhile: another thread assigns `.data` or calls resize_ while the kernel works without
the GIL, a handler of the warning that `out=` is resized does, or the resized `out` is an input. Kernels on small tensors
keep the GIL and run no foreign code, so they go without: an alias costs about as much as a small sum. Keeping only the
storages alive would cost less, but sizes read before and memory read after would then belong to different tensors.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op, forward_fn, set_held
from tinygrad_ext.core.data.tensor cimport Tensor, alias, set_geometry


cdef object _held(object o, list given, list kept):
    if isinstance(o, Tensor):
        given.append(o)
        o = alias(<Tensor>o)
        kept.append(o)
    return o


cdef int hold(Op op, PyObject **args, PyObject **held, list given, list kept) except -1:
    """Copy the arguments, with an alias in the place of each tensor; an object given twice gets one alias."""
    cdef int i, j, k
    for i in range(op.nargs):
        held[i] = args[i]
    for i in range(op.ntensors):
        k = op.tensors[i]
        for j in range(i):
            if args[op.tensors[j]] == args[k]:
                held[k] = held[op.tensors[j]]
                break
        else:
            o = <object>args[k]
            if isinstance(o, (list, tuple)):
                o = [_held(t, given, kept) for t in o]
                kept.append(o)
                given.append(None)
            else:
                o = _held(o, given, kept)
            held[k] = <PyObject *>o
    return 0


cdef object _given_back(object result, list given, list kept):
    """The result, with the caller's own tensors instead of their aliases."""
    cdef int i
    if isinstance(result, Tensor):
        for i in range(len(kept)):
            if kept[i] is result:
                return given[i]
    elif type(result) is tuple or type(result) is list:
        return type(result)([_given_back(r, given, kept) for r in result])
    return result


cdef object run_held(forward_fn run, Op op, PyObject **args, PyObject *out, bint apart):
    """Run a kernel so. An `out` that is resized takes its new memory at the end.

    apart: `out` is that of an out= form, and must not be mistaken for an argument written in place when it is one.
    """
    cdef PyObject *held[MAX_ARGS + 1]
    cdef list given = [], kept = []
    cdef Tensor target
    cdef int i
    hold(op, args, held, given, kept)
    if out == NULL:
        return _given_back(run(op, held, NULL), given, kept)
    target = None
    for i in range(op.ntensors):
        if not apart and args[op.tensors[i]] == out:
            target = <Tensor>held[op.tensors[i]]
    if target is None:
        target = alias(<Tensor>out)
    memory = target.storage
    result = run(op, held, <PyObject *>target)
    if result is not target:
        return _given_back(result, given, kept)
    if target.storage is not memory:
        set_geometry(<Tensor>out, target)
    return <object>out


set_held(run_held)
