# cython: language_level=3
"""The in-place and out= forms, derived for every op that has them.

Every write to a target goes through `_write` here: what it asks of the target before and counts after is the same for all.
A pointwise op and a pair in C write straight into the target where it is fit for it (pointwise.pyx, kernel_targets.pxi), a
view op moves its window; any other op computes and the result is delivered (outputs.pyx, which tells the policy). What a
kernel changes besides its targets, kernel_results.pxi counts.
"""
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Fast_ITEMS
from tinygrad_ext.core.call.dispatch cimport (
    COMPOSITE, INPLACE, KERNEL, OUT, Op, POINTWISE, TGX_LEVELS, any_needs_grad, call_op, check_written, forward,
    kernel_into, mark_derived, named, pointwise_into, record_op, run_instead, state, through_levels,
)
from tinygrad_ext.core.data.dtype cimport META, dtype_of
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.call.places cimport GUARDED
from tinygrad_ext.core.call.pointwise cimport refuse_real_result
from tinygrad_ext.core.call.outputs cimport (
    check_inference, check_inputs, check_readonly, check_target, check_writable, deliver, deliver_all, note_write, shows_history,
)
from tinygrad_ext.core.data.tensor cimport DERIVED, DIFF_VIEW, INFERENCE, Tensor, alias, set_geometry
from tinygrad_ext.core.data.types cimport is_coded, is_complex, uint64_t


cdef uint64_t window_moves = 0


cdef uint64_t moves() noexcept:
    """How often a tensor has changed its own window: such a write counts as one, and no element differs after it."""
    return window_moves


cdef object forward_into(Op op, PyObject **args, Tensor out, bint inplace):
    """Run the kernel and leave its result in `out`."""
    cdef PyObject *target = <PyObject *>out
    if state().instead != NULL:
        return run_instead(op, args, inplace)
    _write(op, args, &target, 1, inplace)
    return out


cdef int _write(Op op, PyObject **args, PyObject **targets, int count, bint inplace) except -1:
    """Run the kernel and leave its results in the targets, as many as there are results."""
    cdef int i
    cdef bint brought = False
    global window_moves
    for i in range(count):
        if (<Tensor>targets[i]).bits & INFERENCE:
            check_inference(<Tensor>targets[i])
        if (<Tensor>targets[i]).storage is not None and (<Tensor>targets[i]).storage.watched & GUARDED:
            slot("before_write")(<size_t><PyObject *>(<Tensor>targets[i]).storage)
        brought |= (<Tensor>targets[i]).device_id > META
    if op.is_view and inplace:          # t_, squeeze_, ...: the tensor changes its own window
        set_geometry(<Tensor>targets[0], <Tensor>forward(op, args))
        window_moves += 1
        return note_write(<Tensor>targets[0])
    if op.makes_list or brought and (op.pair != NULL or not op.any_device):        # a plugin's kernels know no target
        _compute(op, args, targets, count, inplace)
    elif op.kind == POINTWISE:
        pointwise_into(op, args, targets[0])
    elif op.pair != NULL:
        kernel_into(op, args, targets, inplace)
    elif op.kind == KERNEL and op.out_kernel:
        check_writable(<Tensor>targets[0], op.title)
        args[op.nargs] = targets[0]
        op.kernel(args)
    else:
        _compute(op, args, targets, count, inplace)
    for i in range(count):
        note_write(<Tensor>targets[i])
        if state().in_forward:
            _mark_written(op, args, <Tensor>targets[i])
    return 0


cdef int _compute(Op op, PyObject **args, PyObject **targets, int count, bint inplace) except -1:
    if inplace:
        refuse_real_result(op, args, targets[0])
    result = forward(op, args)
    if count > 1 or op.makes_list:
        return deliver_all(op, targets, count, list(result), False)
    if not isinstance(result, Tensor):
        raise TypeError(f"{op.title}(): a form that writes to a tensor takes an op with one Tensor as result, this one returned "
                        f"{type(result).__name__}")
    if <PyObject *>result == args[0] and not inplace:       # whoever hears of a warning may give it other memory
        result = alias(<Tensor>result)
    return deliver(op, <Tensor>targets[0], <Tensor>result, False, inplace)


cdef int _mark_written(Op op, PyObject **args, Tensor out) except -1:
    """Inside a Function's forward: what out now depends on, the tensor it is a view of depends on too."""
    mark_derived(op, args, out)
    if out.bits & DERIVED and out.base is not None:
        (<Tensor>out.base).bits |= DERIVED
    return 0


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
    if op.apart:
        check_inputs(op, args, <Tensor>o, -1, True)
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
    check_target(op, t, result.device_id, result.sizes, result.rank, result.tid, True)
    return t.copy_(result)


cdef bint _loses_parts(Op op, PyObject **args, Tensor out) noexcept:
    """Whether a complex operand would have to be read as a real one, to give out's dtype."""
    return op.ntensors and isinstance(<object>args[op.tensors[0]], Tensor) and is_complex((<Tensor>args[op.tensors[0]]).tid) \
        and not is_complex(out.tid)


cdef object call_out(Op op, PyObject **args, object out):
    """The form with out=: fills it (a tuple for several results) and returns it; of a list of results it returns nothing."""
    cdef int i
    if state().flags & TGX_LEVELS:
        args[op.nargs] = <PyObject *>out
        result = through_levels(op, args, OUT)
        if result is not NotImplemented:
            return result
    if not state().no_grad and (any_needs_grad(op, args) or _wants_grad(out)):
        raise RuntimeError(f"{op.title}(): functions with out=... arguments don't support automatic differentiation, but one of "
                           "the arguments requires grad. Leave out= away, or work in no_grad().")
    i = op.adopts
    if i < 0 and op.options >= 0 and is_coded((<Tensor?>out).tid):      # a kernel knows no such target
        i = op.options
    if i >= 0 and args[i] == <PyObject *>None and not _loses_parts(op, args, <Tensor?>out):
        adopted = dtype_of((<Tensor?>out).tid)
        args[i] = <PyObject *>adopted
    if op.nreturns == 1 and not op.makes_list:
        if op.apart:
            check_inputs(op, args, <Tensor?>out, -1, False)
        return (_fill if op.fills and (<Tensor?>out).rank != 1 else forward_into)(op, args, <Tensor?>out, False)
    given = tuple(out)          # a list may be changed meanwhile
    if len(given) != op.nreturns and not op.makes_list:
        raise TypeError(f"{op.title}(): argument 'out' must be a tuple of {op.nreturns} tensors, not of {len(given)}")
    for t in given:
        if not isinstance(t, Tensor):
            raise TypeError(f"{op.title}(): argument 'out' must be tensors, not {type(t).__name__}")
        if op.apart:
            check_inputs(op, args, <Tensor>t, -1, False)
    _write(op, args, PySequence_Fast_ITEMS(given), <int>len(given), False)
    if op.makes_list:
        return None
    return given if named(op) is None else op.returns_out(given)


cdef object _fill(Op op, PyObject **args, Tensor out, bint inplace):
    check_readonly(out, "out=")         # before it is given other sizes
    row = forward_into(op, args, <Tensor?>out.new_empty((out.count,)), False)
    if row.numel() != out.count:
        out.resize_(row.shape)
    return out.copy_(row.reshape(out.shape))


cdef bint _wants_grad(object out):
    if isinstance(out, Tensor):
        return shows_history(<Tensor>out)
    for t in out:
        if isinstance(t, Tensor) and shows_history(<Tensor>t):
            return True
    return False
