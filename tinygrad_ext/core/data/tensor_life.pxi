# How a tensor is freed, and whether the garbage collector knows it (see tracking.pyx). Part of tensor.pyx.

cdef destructor _plain_dealloc = NULL


cdef void _dealloc(PyObject *o) noexcept:
    """Free a Tensor; a chain of bases or of gradients does not nest."""
    if _keep_whole(o):
        return
    tgx_unlink(&(<Links *>o).link)
    if (<Links *>o).accumulator != NULL:
        leave_accumulator(<Tensor>o)
    if (<Links *>o).base != <PyObject *>None or (<Links *>o).grad_ != <PyObject *>None:
        _dealloc_links_last(o)
    else:
        _plain_dealloc(o)


cdef void _dealloc_links_last(PyObject *o) noexcept:
    cdef PyObject *base = (<Links *>o).base
    cdef PyObject *grad = (<Links *>o).grad_
    (<Links *>o).base = (<Links *>o).grad_ = NULL
    _plain_dealloc(o)
    let_go(base)
    let_go(grad)


def attributes_of(Tensor t not None):
    """The instance's own attributes as a dict, or None where nobody has set any."""
    return t.__dict__ if (<Links *>t).attributes != NULL else None


# ---- the garbage collector -----------------------------------------------------------------------------------------

cdef void _expose(PyObject *o) noexcept:
    if (<Links *>o).link.next != NULL:
        track_all()


cdef bint settle(Tensor t) noexcept:
    return _settle(t, 2)


cdef bint _settle(Tensor t, int depth) noexcept:
    if t.link.next != NULL:
        return True
    if not exact(t) or (<Links *>t).attributes != NULL or t.extra is not None or depth == 0:
        return False
    if t.node is not None and PyObject_GC_IsTracked(<PyObject *>t.node):
        return False
    if t.base is not None and not _settle(<Tensor>t.base, depth - 1):
        return False
    if t.grad_ is not None and not _settle(<Tensor>t.grad_, depth - 1):
        return False
    PyObject_GC_UnTrack(<PyObject *>t)
    tgx_link_into(&tgx_ring, &t.link)
    return True


cdef int set_grad(Tensor t, object grad) except -1:
    """Let t's gradient be a Tensor or None."""
    t.grad_ = grad
    if t.link.next != NULL and grad is not None and not settle(<Tensor>grad):
        track_all()
    return 0


cdef int set_base(Tensor t, Tensor base, Py_ssize_t own) except -1:
    """Let t be a view of base. own: references to t that are the caller's."""
    t.base = base
    if t.link.next != NULL and base.link.next == NULL and not settle(base):
        let_know(t, own)
    return 0


for _type in (Tensor, Parameter):
    tgx_give_dict(_type, TGX_DICT_OFFSET, _expose)
    tgx_own_clear(_type, TGX_DICT_OFFSET)
    tgx_start_untracked(_type, TGX_LINK_OFFSET)
    _plain_dealloc = tgx_own_dealloc(_type, _dealloc)
add_ring(&tgx_ring, TGX_LINK_OFFSET)
