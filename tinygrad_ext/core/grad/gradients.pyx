# cython: language_level=3
"""Gradients on their way between two nodes: checked, summed, put into `.grad`, shown to hooks.

A sum goes into the memory of the gradient that came first, and a leaf takes its first gradient as it is, where reference
counts tell that nobody else holds the tensor or its memory. Rejected: copying always, an allocation and a pass more for each
gradient; and writing always, since a hook, the caller or a second leaf may hold the same tensor.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free
from tinygrad_ext.core.call.callables cimport OpFunction
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op, TGX_LEVELS, call_below, state
from tinygrad_ext.core.call.inplace cimport inplace_below
from tinygrad_ext.core.data.dtype cimport CPU, device as Device, device_of, dtype_of, flips_of, is_host, make_size
from tinygrad_ext.core.grad.edges cimport AccumulateGrad, CopySlices
from tinygrad_ext.core.call.levels cimport HostOperation, offer
from tinygrad_ext.core.loops.copy cimport copy_into
from tinygrad_ext.core.grad.node cimport Hooks, Meta, Node
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.slots import set_slot
from tinygrad_ext.core.data.tensor cimport (
    CONTIGUOUS, REQUIRES_GRAD, Tensor, empty_like, exact, needs_grad, set_grad, shape_text, shown_device)
from tinygrad_ext.core.data.types cimport is_complex

# The functions of the upper layers that the hot path calls, read from the slots once they are filled.
cdef OpFunction _add = None
cdef OpFunction _add_into = None


def read_slots():
    """Keep the hottest slots at hand."""
    global _add, _add_into
    _add, _add_into = slot("add"), slot("add_")


cdef object _sum(object a, object b):
    """a + b, straight to the op where nobody is to be asked."""
    cdef PyObject *args[MAX_ARGS + 1]
    if not _plain(a, b):
        return _add(a, b)
    return call_below(_bound(_add, args, a, b), args)


cdef object _sum_into(object a, object b):
    """a += b."""
    cdef PyObject *args[MAX_ARGS + 1]
    if not _plain(a, b):
        return _add_into(a, b)
    return inplace_below(_bound(_add_into, args, a, b), args)


cdef inline bint _plain(object a, object b) noexcept:
    return exact(a) and exact(b) and not state().flags


cdef inline Op _bound(OpFunction f, PyObject **args, object a, object b):
    """The op of a sum, whose arguments but two have their defaults."""
    cdef Op op = <Op>f.first
    cdef int i
    args[0], args[1] = <PyObject *>a, <PyObject *>b
    for i in range(2, op.nargs):
        args[i] = op.args[i].default
    return op


cdef tuple row(PyObject **grads, int n):
    """Gradients as a tuple, None for those that are missing."""
    return tuple([<object>grads[i] if grads[i] != NULL else None for i in range(n)])


cdef object validated(Node n, int nr, object grad, Node source, int index):
    """The gradient in the shape and dtype of n's output; RuntimeError when it cannot be."""
    cdef Tensor g
    cdef Meta *m = &n.metas[nr]
    cdef int i
    cdef bint same
    if not isinstance(grad, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(grad).__name__}) as gradient for {n.name()}")
    g = <Tensor>grad
    if g.device_id != m.device_id:
        grad = g = _from_elsewhere(n, m, g, source, index)
    same = g.rank == m.rank
    if same:
        for i in range(g.rank):
            if g.sizes[i] != m.sizes[i]:
                same = False
    if not same:
        grad = _reduced(n, nr, g, source, index)
        g = <Tensor>grad
    if g.tid != m.tid:
        if is_complex(g.tid) and not is_complex(m.tid):
            if source is not None and source.op is None and not isinstance(source, CopySlices):
                raise RuntimeError(f"Function {source.name()} returned a complex gradient at index {index}, but the input is real "
                                   f"({dtype_of(m.tid)}). Return its real part: grad.real.")
            grad = slot("real")(grad)
            g = <Tensor>grad
        if g.tid != m.tid:
            grad = slot("to_dtype")(grad, dtype_of(m.tid))
    return grad


cdef Tensor _from_elsewhere(Node n, Meta *m, Tensor g, Node source, int index):
    """A gradient whose device has another number: of a plugin's dtype, carried, or a wrapper's. One with the conjugate or the negative
    bit is resolved, once, where each step back would have to do it. A sparse one gets its zeros where a rule would not know it."""
    if n.op is not None and not exact(g) and g.is_sparse:
        return g.to_dense()
    if flips_of(g.device_id):
        g = slot("clone")(g)
    if (not (is_host(g.device_id) and m.device_id == CPU)
            and (<Device>shown_device(g)).id != m.device_id):
        raise RuntimeError(f"{_giver(source)} returned an invalid gradient at index {index} - expected device "
                           f"{device_of(m.device_id)} but got {g.device}")
    return g


cdef str _giver(Node source):
    return f"Function {source.name()}" if source is not None else "The caller of backward"


cdef object _reduced(Node n, int nr, Tensor g, Node source, int index):
    cdef Meta *m = &n.metas[nr]
    cdef int i, shift = g.rank - m.rank
    cdef bint fits = shift >= 0
    if fits:
        for i in range(m.rank):
            if m.sizes[i] != g.sizes[shift + i] and m.sizes[i] != 1:
                fits = False
    if not fits:
        raise RuntimeError(f"{_giver(source)} returned an invalid gradient at index {index} - got {shape_text(g)} but expected shape "
                           f"compatible with {[m.sizes[i] for i in range(m.rank)]}")
    return slot("sum_to")(g, make_size(m.sizes, m.rank))


cdef object sum_gradients(object a, object b, bint create_graph):
    """a + b, into a's memory when nobody else can see it and b fits there: what a transform carries may be larger than it shows."""
    cdef Tensor t = <Tensor>a
    # one reference here, one in the caller's `old`
    if (exact(b) and not create_graph and (<PyObject *>a).ob_refcnt <= 2 and t.base is None and t.storage is not None
            and (<PyObject *>t.storage).ob_refcnt == 1 and t.bits & CONTIGUOUS and not needs_grad(t)):
        return _sum_into(a, b)
    return _sum(a, b)


cdef int add_to_leaf(AccumulateGrad n, PyObject **grads, bint create_graph) except -1:
    """Add the gradient into the leaf's .grad."""
    if grads[0] == NULL:
        return 0
    if state().flags & TGX_LEVELS:
        offer(_accumulation, (n.variable, <object>grads[0], create_graph))
    else:
        _accumulate(n.variable, <Tensor><object>grads[0], create_graph)
    if n.hooks is not None and n.hooks.accumulated is not None:
        for _, fn in list(n.hooks.accumulated):
            fn(n.variable)
    return 0


def accumulate(Tensor leaf not None, Tensor grad not None, bint create_graph):
    """Add a gradient into leaf.grad, which shares no memory with it afterwards."""
    _accumulate(leaf, grad, create_graph)


cdef HostOperation _accumulation = HostOperation("autograd::accumulate_grad", accumulate)


cdef int _accumulate(Tensor v, Tensor g, bint create_graph) except -1:
    if v.node is not None:
        raise RuntimeError("leaf variable has been moved into the graph interior: it was written to in place after the forward, "
                           "and its .grad would belong to the old value. Write to a clone() of it.")
    if not v.bits & REQUIRES_GRAD:
        pass                            # frozen since the forward
    elif v.grad_ is None:
        if (not (create_graph or v.bits & g.bits & CONTIGUOUS) and exact(g) and g.device_id == v.device_id == CPU
                and state().instead == NULL):
            set_grad(v, _laid_out(g, v))
        # take the gradient itself when this pass alone holds it and its memory
        elif not create_graph and (<PyObject *>g).ob_refcnt <= 2 and g.storage is not None and (
                <PyObject *>g.storage).ob_refcnt == 1 and g.bits & CONTIGUOUS and g.storage.block and not needs_grad(g):
            set_grad(v, g)
        elif create_graph:
            # of a wrapper, such as a sparse tensor, its parts may have a history
            set_grad(v, slot("clone")(g) if needs_grad(g) or not exact(g) else slot("detached_clone")(g))
        elif exact(g) and g.device_id == v.device_id == CPU and not state().flags and state().instead == NULL:
            set_grad(v, _laid_out(g, v))
        else:
            set_grad(v, slot("detached_clone")(g))
    elif create_graph or (not exact(v.grad_) and exact(g) and v.grad_.is_sparse):    # a plain sum takes the place of what is sparse
        set_grad(v, _sum(v.grad_, g))
    elif needs_grad(<Tensor>v.grad_) or needs_grad(g):
        slot("accumulate_into")(v.grad_, g)
    else:
        _sum_into(v.grad_, g)
    return 0


cdef Tensor _laid_out(Tensor g, Tensor leaf):
    """A gradient in memory of its own, its dimensions in the order of a leaf: so optimizers walk both alike."""
    cdef Tensor laid = empty_like(leaf, g.tid)
    copy_into(laid, g)
    return laid


# ---- hooks ----------------------------------------------------------------------------------------------------------

def retain(Tensor t not None, grad not None):
    """Add a gradient into the .grad of a tensor that is no leaf."""
    set_grad(t, grad if t.grad_ is None else _sum(t.grad_, grad))


cdef HostOperation _retention = HostOperation("autograd::retain_grad", retain)


cdef int run_tensor_hooks(Node n, PyObject **grads) except -1:
    """Tensor hooks, then retained gradients: of what arrives at a node, whether or not that is run."""
    cdef Hooks h = n.hooks
    cdef int i
    if h.tensor is not None:
        for i in range(n.noutputs):
            for _, fn in list(h.tensor.get(i, ())):
                _replace(n, i, grads, fn(<object>grads[i] if grads[i] != NULL else None), fn)
    if h.retain is not None and not isinstance(n, AccumulateGrad):
        for i, reference in h.retain.items():
            t = reference()
            if t is not None and grads[i] != NULL:
                if state().flags & TGX_LEVELS:
                    offer(_retention, (t, <object>grads[i]))
                else:
                    retain(t, <object>grads[i])
    return 0


cdef int run_pre_hooks(Node n, PyObject **grads) except -1:
    """The hooks before a node that is run."""
    cdef Hooks h = n.hooks
    cdef int i
    if h.pre is not None:
        for _, fn in list(h.pre):
            got = fn(row(grads, n.noutputs))
            if got is not None:
                for i, g in enumerate(_hook_row(n, got, n.noutputs, fn)):
                    _replace(n, i, grads, g, fn)
    return 0


cdef str _hook_name(object fn):
    return f"hook '{getattr(fn, '__name__', type(fn).__name__)}'"


cdef tuple _hook_row(Node n, object got, int wanted, object fn):
    """The gradients that a node's hook returned; a single one needs no tuple."""
    if isinstance(got, Tensor) and wanted == 1:
        return (got,)
    if not isinstance(got, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(got).__name__}': {_hook_name(fn)} of {n.name()} returns None, or "
                        "one gradient for each that it was given")
    if len(got) != wanted:
        raise RuntimeError(f"{_hook_name(fn)} has returned an incorrect number of values (got {len(got)}, but expected {wanted}) "
                           f"for {n.name()}")
    for g in got:
        _check_tensor(n, g, fn)
    return tuple(got)


cdef int _check_tensor(Node n, object got, object fn) except -1:
    if got is not None and not isinstance(got, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}': {_hook_name(fn)} of {n.name()} returns None or "
                        "the gradient to go on with")
    return 0


cdef int _replace(Node n, int i, PyObject **grads, object got, object fn) except -1:
    """Put what a hook returned in the place of gradient i, which it must equal in size and dtype."""
    cdef Tensor old
    if got is None:
        return 0
    _check_tensor(n, got, fn)
    if grads[i] == NULL:
        raise RuntimeError(f"{_hook_name(fn)} of {n.name()} can't replace a None gradient with a non-None value: None came because the "
                           "outputs that follow do not depend on this tensor. Return None for it.")
    old = <Tensor><object>grads[i]
    if got.shape != old.shape:
        raise RuntimeError(f"{_hook_name(fn)} has changed the size of value: {n.name()} got {shape_text(old)}, the hook returned "
                           f"{shape_text(<Tensor>got)}")
    if got.dtype != old.dtype or got.device != old.device:
        raise RuntimeError(f"{_hook_name(fn)} has changed the type of value (was {old.dtype} on {old.device}, got {got.dtype} on "
                           f"{got.device})")
    old = None
    Py_INCREF(got)
    Py_XDECREF(grads[i])
    grads[i] = <PyObject *>got
    return 0


cdef int run_post_hooks(Node n, PyObject **grads, PyObject **results) except -1:
    cdef int i
    outgoing = row(grads, n.noutputs)
    for _, fn in list(n.hooks.post):
        got = fn(row(results, n.nedges), outgoing)
        if got is None:
            continue
        got = _hook_row(n, got, n.nedges, fn)
        for i in range(n.nedges):
            Py_XDECREF(results[i])
            results[i] = NULL
            if got[i] is not None:
                Py_INCREF(got[i])
                results[i] = <PyObject *>got[i]
    return 0


cdef int explain(Node n) except -1:
    """In anomaly mode: show where the forward of n was."""
    if n.hooks is not None and n.hooks.trace is not None:
        slot("explain_trace")(n.name(), n.hooks.trace)
    return 0


cdef int check_nan(Node n, PyObject **results) except -1:
    cdef int i
    if state().anomaly != 2:
        return 0
    for i in range(n.nedges):
        if results[i] != NULL and slot("has_nan")(<object>results[i]):
            explain(n)
            raise RuntimeError(f"Function '{n.name()}' returned nan values in its {i}th output.")
    return 0


cdef bint is_called(Node n, PyObject **grads) noexcept:
    """A node of our own passes nothing on when nothing came; a Function may think otherwise."""
    cdef int i
    if n.released or n.op is None and not isinstance(n, CopySlices):
        return True
    for i in range(n.noutputs):
        if grads[i] != NULL:
            return True
    return False


# ---- a node alone ----------------------------------------------------------------------------------------------------

def call_node(Node n not None, tuple grads not None):
    """`grad_fn(*grads)`: the gradients of its inputs, a tensor where there is one, None for what needs none; no hook is asked.

    Raises TypeError for another number of gradients and for what is no tensor, RuntimeError where the graph was freed.
    """
    cdef int i
    cdef PyObject **given
    cdef unsigned char *needed
    cdef list checked = []
    if len(grads) != n.noutputs:
        raise TypeError(f"{n.name()} expected {n.noutputs} arguments, got {len(grads)} instead: a gradient for each of its outputs")
    for i in range(n.noutputs):
        if grads[i] is not None and not isinstance(grads[i], Tensor):
            raise TypeError(f"{n.name()} expected a Tensor or None as argument {i}, got {type(grads[i]).__name__}")
    given = <PyObject **>calloc(n.noutputs + n.nedges + 1, sizeof(PyObject *) + 1)
    if given == NULL:
        raise MemoryError()
    needed = <unsigned char *>(given + n.noutputs + n.nedges + 1)
    try:
        for i in range(n.noutputs):
            if grads[i] is not None:
                checked.append(validated(n, i, grads[i], None, i))
                given[i] = <PyObject *>checked[len(checked) - 1]
        for i in range(n.nedges):
            needed[i] = n.edges[i].node != NULL
        if isinstance(n, AccumulateGrad):
            add_to_leaf(<AccumulateGrad>n, given, not state().no_grad)
            return ()
        if is_called(n, given):
            n.apply(given, given + n.noutputs, needed)
        found = row(given + n.noutputs, n.nedges)
        return found[0] if n.nedges == 1 else found
    finally:
        for i in range(n.nedges):
            Py_XDECREF(given[n.noutputs + i])
        free(given)


set_slot("call_node", call_node)
