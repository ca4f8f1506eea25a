# How the user's backward is called, and what it may not do to its gradients. Part of function.pyx.

cdef object _call_backward(FunctionNode ctx, PyObject **grads):
    """Run the user's backward; RuntimeError when it wrote to a gradient that others may hold."""
    cdef uint32_t version
    cdef uint64_t moved
    cdef object g, got
    cdef object rule = backward_of(ctx.plan.function)
    if ctx.plan.function.boxed_grads_call:
        return _call_boxed(ctx, rule, _box(ctx, grads))
    if ctx.noutputs == 1 and grads[0] != NULL:
        g = <object>grads[0]
        version, moved = version_of(<Tensor>g), moves()
        got = rule(ctx, g)
        if _was_written(g, version, moved):
            raise _changed_gradient(ctx)
        return got
    return _call_with_many(ctx, rule, grads)


cdef object _call_with_many(FunctionNode ctx, object rule, PyObject **grads):
    cdef int i
    cdef list given = [_gradient(ctx, i, grads) for i in range(ctx.noutputs)]
    cdef list versions = [version_of(<Tensor>g) if isinstance(g, Tensor) else 0 for g in given]
    cdef uint64_t moved = moves()
    got = rule(ctx, *given)
    for i in range(ctx.noutputs):
        # zeros made here belong to backward alone
        if grads[i] != NULL and _was_written(given[i], versions[i], moved):
            raise _changed_gradient(ctx)
    return got


cdef object _call_boxed(FunctionNode ctx, object rule, list box):
    """Only gradients that somebody else can see are watched: the others may go early."""
    cdef list watched = []
    for g in box:
        if isinstance(g, Tensor) and _is_shared(<Tensor>g, 2):
            watched.append((g, version_of(<Tensor>g)))
    cdef uint64_t moved = moves()
    got = rule(ctx, box)
    for g, version in watched:
        if _was_written(g, version, moved):
            raise _changed_gradient(ctx)
    return got


cdef bint _was_written(object g, uint32_t version, uint64_t moved) noexcept:
    """Whether more was counted than windows that moved: `grad.unsqueeze(-1).unsqueeze_(-1)` leaves grad as it is."""
    cdef uint32_t now = version_of(<Tensor>g)
    return now != version and <uint64_t>(now - version) > moves() - moved


cdef bint _is_shared(Tensor g, int own) noexcept:
    """Whether there are more references to g than the caller's own, or others to its memory."""
    return (<PyObject *>g).ob_refcnt > own or g.base is not None or (
        g.storage is not None and (<PyObject *>g.storage).ob_refcnt > 1)


cdef list _box(FunctionNode ctx, PyObject **grads):
    """The gradients in a list that alone holds them, so that backward can let go of each."""
    cdef int i
    cdef list box = [_gradient(ctx, i, grads) for i in range(ctx.noutputs)]
    if ctx.hooks is None or ctx.hooks.post is None:
        for i in range(ctx.noutputs):
            Py_XDECREF(grads[i])
            grads[i] = NULL
    return box


cdef object _gradient(FunctionNode ctx, int i, PyObject **grads):
    if grads[i] != NULL:
        return <object>grads[i]
    return zeros_for(ctx, i) if ctx.materialize_grads and ctx.metas[i].rank >= 0 else None


cdef object _changed_gradient(FunctionNode ctx):
    return RuntimeError(f"{ctx.name()}: backward changed an incoming gradient in place. Others may hold the same tensor: work "
                        "on grad.clone().")
