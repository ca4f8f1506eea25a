# What a result keeps of how it was made when autograd records nothing: the base of a view, inference mode, what a
# Function's forward made of inputs that need gradients. Part of dispatch.pyx.

cdef bint _is_derived(object o) noexcept:
    cdef Tensor t
    if isinstance(o, Tensor):
        t = <Tensor>o
        return needs_grad(t) or t.bits & DERIVED or (t.base is not None and (<Tensor>t.base).bits & DERIVED)
    if isinstance(o, (list, tuple)):
        for item in o:
            if _is_derived(item):
                return True
    return False


cdef int mark_derived(Op op, PyObject **args, object result) except -1:
    """Inside a Function's forward autograd sees nothing: note at least what depends on inputs that need gradients."""
    cdef int i
    if not op.differentiable:
        return 0
    for i in range(op.ntensors):
        if _is_derived(<object>args[op.tensors[i]]):
            return _mark(result)
    return 0


cdef int _mark(object result) except -1:
    if isinstance(result, Tensor):
        (<Tensor>result).bits |= DERIVED
    elif isinstance(result, (tuple, list)):
        for r in result:
            _mark(r)
    return 0


cdef int _link_views(Op op, object base, object result, int own) except -1:
    """Note whose memory a view shares, so that autograd follows in-place writes. own: references to it that are ours."""
    cdef Tensor t, b
    if op.kind == COMPOSITE or not isinstance(base, Tensor):
        return 0
    if not isinstance(result, Tensor):
        for r in result:
            _link_views(op, base, r, 3)
        return 0
    t, b = <Tensor>result, <Tensor>base
    if t is b or t.storage is not b.storage:
        return 0
    # a view that was made a leaf by requires_grad_() is the base of its own views
    set_base(t, <Tensor>b.base if b.bits & DIFF_VIEW and not b.bits & REQUIRES_GRAD else b, own)
    t.bits |= DIFF_VIEW
    if b.extra is not None and "made_by" in b.extra:        # a view that a Function returned
        t.extra = {"made_by": b.extra["made_by"]}
    if tgx_thread_state.no_grad:
        t.bits |= DETACHED_VIEW
    else:
        t.bits |= b.bits & DETACHED_VIEW
    t.view_version = version_of(t)
    return 0


cdef bint _made_here(Op op, PyObject **args, object result) noexcept:
    """Whether the call made tensors: not those it was given, and no window on one from outside inference mode."""
    cdef Tensor first, made
    if op.kind == COMPOSITE or op.writes or <PyObject *>result == args[op.tensors[0]]:
        return False
    if op.ntensors == 0 or not isinstance(<object>args[op.tensors[0]], Tensor):
        return True
    first = <Tensor><object>args[op.tensors[0]]
    if first.bits & INFERENCE:
        return True
    made = <Tensor>result if isinstance(result, Tensor) else None
    return not op.is_view and (made is None or made.storage is None or made.storage is not first.storage)


cdef int _mark_inference(object result) except -1:
    if isinstance(result, Tensor):
        (<Tensor>result).bits |= INFERENCE
    elif isinstance(result, (tuple, list)):
        for r in result:
            _mark_inference(r)
    return 0
