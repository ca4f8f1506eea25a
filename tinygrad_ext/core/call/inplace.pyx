# cython: language_level=3
"""The in-place and out= forms, derived for every op that has them.

A pointwise op and a pair in C write straight into the target where it is fit for it (pointwise.pyx, kernel_targets.pxi), a
view op moves its window; any other op computes and the result is copied. The write to a target is counted in its version
and noted with its line here, and by no kernel; what a kernel changes besides, kernel_results.pxi counts.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.loops.copy cimport copy_into
from tinygrad_ext.core.call.dispatch cimport (
    COMPOSITE, INPLACE, KERNEL, OUT, Op, POINTWISE, TGX_LEVELS, any_needs_grad, call_op, check_written, forward, kernel_into,
    mark_derived, record_op, state, through_levels,
)
from tinygrad_ext.core.data.dtype cimport META
from tinygrad_ext.core.call.held cimport run_held
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.call.places cimport GUARDED, note_mutation
from tinygrad_ext.core.call.outputs cimport check_inference, check_writable, prepare_out, refuse_cast, shows_history
from tinygrad_ext.core.data.tensor cimport DERIVED, DIFF_VIEW, Tensor, bump, same_sizes, set_geometry, shape_text


cdef object forward_into(Op op, PyObject **args, Tensor out, bint inplace):
    """Run the kernel and leave its result in `out`."""
    cdef Tensor result
    cdef bint brought = out.device_id > META and (op.pair != NULL or not op.any_device)     # a plugin's kernels know no target
    check_inference(out)
    if out.storage is not None and out.storage.watched & GUARDED:
        slot("before_write")(<size_t><PyObject *>out.storage)
    if op.kind == POINTWISE and not brought:
        forward(op, args, <PyObject *>out)
    elif op.is_view and inplace:
        return set_view(op, args, out)
    elif op.pair != NULL and not brought:
        kernel_into(op, args, out, inplace)
    elif op.kind == KERNEL and op.out_kernel and not brought:
        check_writable(out, op.title)
        if inplace:
            forward(op, args, <PyObject *>out)
        else:
            run_held(forward, op, args, <PyObject *>out, True)
    else:
        result = forward(op, args, NULL)
        _check_device(op, out, result)
        if inplace:
            refuse_cast(result.tid, out.tid)
            if not same_sizes(result, out):
                raise RuntimeError(f"output with shape {shape_text(out)} doesn't match the broadcast shape {shape_text(result)}")
        else:
            prepare_out(out, result.sizes, result.rank, result.tid)
        check_writable(out, op.title)
        copy_into(out, result)
    bump(out)
    note_mutation(out)
    if state().in_forward:
        _mark_written(op, args, out)
    return out


cdef int _mark_written(Op op, PyObject **args, Tensor out) except -1:
    """Inside a Function's forward: what out now depends on, the tensor it is a view of depends on too."""
    mark_derived(op, args, out)
    if out.bits & DERIVED and out.base is not None:
        (<Tensor>out.base).bits |= DERIVED
    return 0


cdef int _check_device(Op op, Tensor out, Tensor result) except -1:
    """Nothing is copied between the cpu and meta here; a factory has no device of its own and may fill either."""
    if out.device_id != result.device_id and (op.ntensors or not out.device_id):
        raise RuntimeError(f"{op.title}(): Expected out tensor to have device {result.device}, but got {out.device} instead")
    return 0


cdef object set_view(Op op, PyObject **args, Tensor out):
    """In-place form of a view op (t_, squeeze_, ...): the tensor changes its own window."""
    cdef Tensor result = forward(op, args, NULL)
    set_geometry(out, result)
    bump(out)
    return out


cdef object call_inplace(Op op, PyObject **args):
    if state().flags & TGX_LEVELS:
        result = through_levels(op, args, INPLACE)
        if result is not NotImplemented:
            return result
    return inplace_below(op, args)


cdef object inplace_below(Op op, PyObject **args):
    """op_(self, ...): writes into self and returns it."""
    cdef object o = <object>args[0]
    if not isinstance(o, Tensor):
        raise TypeError(f"{op.title}_(): argument 'self' must be Tensor, not {type(o).__name__}")
    if not state().no_grad:
        if any_needs_grad(op, args):
            return record_inplace(op, args, o)
        if (<Tensor>o).bits & DIFF_VIEW:
            check_written(args, 1, False, 1, op.title)
    return forward_into(op, args, <Tensor>o, True)


cdef object record_inplace(Op op, PyObject **args, object o):
    if op.kind == COMPOSITE or (op.custom is not None and op.nrules == 0):
        return _out_of_place(op, args, <Tensor>o)
    return record_op(op, args, <PyObject *>o, True)


cdef object _out_of_place(Op op, PyObject **args, Tensor t):
    """A composite, or an op with a backward of its own, computes out of place; copy_ then carries the derivative.
    It is given a copy of t: what it saves must outlast the write."""
    cdef int i
    cdef Tensor result
    before = slot("clone")(t)
    for i in range(op.nargs):
        if args[i] == <PyObject *>t:
            args[i] = <PyObject *>before
    result = call_op(op, args)
    refuse_cast(result.tid, t.tid)
    if not same_sizes(result, t):
        raise RuntimeError(f"output with shape {shape_text(t)} doesn't match the broadcast shape {shape_text(result)}")
    return t.copy_(result)


cdef object call_out(Op op, PyObject **args, object out):
    """The form with out=: fills it (a tuple for several results) and returns it."""
    cdef list results
    if state().flags & TGX_LEVELS:
        args[op.nargs] = <PyObject *>out
        result = through_levels(op, args, OUT)
        if result is not NotImplemented:
            return result
    if not state().no_grad and (any_needs_grad(op, args) or _wants_grad(out)):
        raise RuntimeError(f"{op.title}(): functions with out=... arguments don't support automatic differentiation, but one of "
                           "the arguments requires grad. Leave out= away, or work in no_grad().")
    if isinstance(out, Tensor):
        return forward_into(op, args, <Tensor>out, False)
    results = list(forward(op, args, NULL))
    for target, result in zip(out, results):
        check_inference(<Tensor>target)
        _check_device(op, <Tensor>target, <Tensor>result)
        prepare_out(<Tensor>target, (<Tensor>result).sizes, (<Tensor>result).rank, (<Tensor>result).tid)
        check_writable(<Tensor>target, op.title)
        copy_into(<Tensor>target, <Tensor>result)
        bump(<Tensor>target)
    return tuple(out)


cdef bint _wants_grad(object out):
    if isinstance(out, Tensor):
        return shows_history(<Tensor>out)
    for t in out:
        if isinstance(t, Tensor) and shows_history(<Tensor>t):
            return True
    return False
