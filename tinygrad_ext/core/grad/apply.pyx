# cython: language_level=3
"""The hot path of autograd.Function: bind, run the forward, write down the node.

Edges are taken before the forward runs, because the forward may write to its inputs.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, state, tgx_state
from tinygrad_ext.core.grad.function cimport IS_TENSOR, FunctionNode
from tinygrad_ext.core.grad.history cimport check_targets, give_history, rewrite
from tinygrad_ext.core.call.levels cimport Operation, offer
from tinygrad_ext.core.grad.node cimport FRESH, reserve_outputs, set_meta
from tinygrad_ext.core.call.places cimport note_mutation
from tinygrad_ext.core.grad.plan cimport Plan, plan_of
from tinygrad_ext.core.data.tensor cimport (
    DERIVED, DIFF_VIEW, REQUIRES_GRAD, Tensor, alias, bump, needs_grad, set_base, version_of,
)
from tinygrad_ext.core.data.types cimport is_inexact

cdef extern from *:
    """
    #define TGX_ITEMS(row) (((PyTupleObject *)(row))->ob_item)
    """
    PyObject **TGX_ITEMS(tuple row)

cdef extern from "Python.h":
    object PyObject_Call(object f, tuple args, PyObject *keywords)
    object PyObject_VectorcallDict(object f, PyObject **args, size_t n, PyObject *keywords)

cdef enum:
    FEW_ARGS = 8
    DEPTH = 6               # of containers that are looked into for tensors


def apply(cls, *args, **kwargs):
    """Call forward and record this Function as one step of the graph.

    Arguments are those of forward without ctx; returns what forward returns, tensors with their history.
    """
    cdef Plan plan = plan_of(cls)
    return _call(plan, FunctionNode.__new__(plan.node_type), args, kwargs)


def call_instance(self, *args, **kwargs):
    """Legacy style: call forward on a node that has the instance's attributes and methods."""
    cdef Plan plan = plan_of(type(self))
    ctx = FunctionNode.__new__(plan.node_type)
    ctx.__dict__.update(self.__dict__)
    return _call(plan, ctx, args, kwargs)


cdef object _call(Plan plan, FunctionNode ctx, tuple args, dict kwargs):
    cdef tuple flat = args, positional = args
    cdef dict keywords = None
    cdef Py_ssize_t given = len(args)
    if kwargs or not plan.fits(given):
        flat, positional, keywords, given = plan.bind(args, kwargs)
        if kwargs:
            ctx.extra_names = tuple(kwargs)
    ctx.plan, ctx.nwanted = plan, given
    if state().flags & TGX_LEVELS:
        return offer(_operation(ctx, len(positional), keywords), flat)
    return _run(plan, ctx, flat, positional, keywords)


cdef class FunctionOperation(Operation):
    """A call of a Function, which levels see as one operation. Its arguments stand in the order of forward's signature.

    Attributes:
        function: the class.
        keywords: names of the arguments behind those that are given by position.
    """

    cdef FunctionNode first         # what each run starts from
    cdef Py_ssize_t npositional
    cdef readonly tuple keywords

    @property
    def function(self):
        return self.first.plan.function

    @property
    def attributes(self):
        """Of the instance that is called, in the legacy style."""
        return self.first.__dict__

    def gradients(self, got):
        """What backward returned as one gradient for each argument."""
        return self.first.plan.row(got, self.first.name(), self.npositional + len(self.keywords), self.first.nwanted,
                                   self.first.extra_names)

    cdef object run(self, tuple args):
        cdef FunctionNode ctx = FunctionNode.__new__(self.first.plan.node_type)
        ctx.plan, ctx.nwanted, ctx.extra_names = self.first.plan, self.first.nwanted, self.first.extra_names
        ctx.__dict__.update(self.first.__dict__)
        if len(args) != self.npositional + len(self.keywords):
            raise TypeError(f"{self.name}: expected {self.npositional + len(self.keywords)} arguments, as a level gets them, "
                            f"but got {len(args)}")
        return _run(ctx.plan, ctx, args, args[:self.npositional], dict(zip(self.keywords, args[self.npositional:])))


cdef FunctionOperation _operation(FunctionNode ctx, Py_ssize_t npositional, dict keywords):
    cdef FunctionOperation made = FunctionOperation.__new__(FunctionOperation)
    made.name = f"function::{ctx.plan.function.__qualname__}"
    made.first, made.npositional, made.keywords = ctx, npositional, tuple(keywords or ())
    return made


cdef object _run(Plan plan, FunctionNode ctx, tuple flat, tuple positional, dict keywords):
    cdef tgx_state *st = state()
    cdef unsigned char was_no_grad = st.no_grad, was_in_forward = st.in_forward
    cdef bint record
    cdef object output
    record = ctx.take_inputs(TGX_ITEMS(flat), len(flat), 0, not was_no_grad) and not was_no_grad
    if not was_no_grad and ctx.nedges < ctx.ninputs:
        _refuse_hidden(ctx, flat)
    st.no_grad = 1
    if record:
        st.in_forward = 1
    try:
        output = _run_forward(plan, ctx, positional, keywords)
        if plan.separate:
            got = plan.setup(ctx, flat, output)
            if got is not None:
                raise TypeError(f"{ctx.name()}: setup_context returned {type(got).__name__}; it keeps things on ctx and returns "
                                "None")
    finally:
        st.no_grad = was_no_grad
        st.in_forward = was_in_forward
    return finish(ctx, flat, output, record)


cdef int _refuse_hidden(FunctionNode ctx, tuple args) except -1:
    """Warn of a tensor inside a list whose gradient would be lost. Not refused: libraries carry trees of tensors past
    autograd on purpose, in Functions whose backward gives them none."""
    cdef int i
    for i in range(ctx.ninputs):
        a = args[i]
        if isinstance(a, (list, tuple, dict)) and _holds(a, DEPTH, needs_grad):
            _warn(f"{ctx.plan.function.__name__}.apply(): the {type(a).__name__} at position {i + 1} holds a tensor that requires "
                  "grad, and its gradient is lost: tensors are seen as arguments of their own only. Pass them as "
                  "apply(*tensors), or a detach() of each where no gradient is wanted.")
    return 0


cdef bint _holds(object a, int depth, bint (*matters)(Tensor) noexcept) except -1:
    """Whether a container holds a tensor whose gradient matters."""
    for item in (a.values() if isinstance(a, dict) else a):
        if isinstance(item, Tensor):
            if matters(<Tensor>item):
                return True
        elif depth and isinstance(item, (list, tuple, dict)) and _holds(item, depth - 1, matters):
            return True
    return False


cdef bint _is_inexact(Tensor t) noexcept:
    return is_inexact(t.tid)


cdef object _run_forward(Plan plan, FunctionNode ctx, tuple args, dict keywords):
    cdef PyObject *row[FEW_ARGS + 1]
    cdef Py_ssize_t i, n = len(args)
    cdef PyObject *named = <PyObject *>keywords if keywords else NULL
    if plan.separate:
        return PyObject_Call(plan.forward, args, named)
    if n > FEW_ARGS:
        return PyObject_Call(plan.forward, (ctx,) + args, named)
    row[0] = <PyObject *>ctx
    for i in range(n):
        row[i + 1] = <PyObject *>args[i]
    return PyObject_VectorcallDict(plan.forward, row, n + 1, named)


cdef object finish(FunctionNode ctx, tuple args, object output, bint record):
    """Give the outputs their history and the node what it keeps."""
    cdef tuple outputs = <tuple>output if isinstance(output, tuple) else (output,)
    cdef int i, n = len(outputs)
    if ctx.dirty is not None:
        _check_dirty(ctx, args, outputs)
    if ctx.non_differentiable is not None:
        _check_plain(ctx, outputs)
    if n != 1:
        reserve_outputs(ctx, n)
    # to an output refer the row, the argument of _wrapped, its variable, and `output`
    wrapped = tuple([_wrapped(ctx, args, outputs[i], i, n, record, 3 if outputs is output else 4) for i in range(n)])
    ctx.seal(record)
    return wrapped if isinstance(output, tuple) else wrapped[0]


cdef object _wrapped(FunctionNode ctx, tuple args, object o, int i, int n, bint record, int own):
    """Output i as the caller sees it. own: references to it that are ours."""
    cdef Tensor t
    cdef bint plain, differentiable
    if not isinstance(o, Tensor):
        ctx.metas[i].rank = -1
        if record and isinstance(o, (list, tuple, dict)) and _holds(o, DEPTH, _is_inexact):
            _warn(f"{ctx.name()}: forward returned tensors inside a {type(o).__name__}, where their gradients are lost. Return "
                  "them as one flat tuple, or a detach() of each where no gradient is wanted.")
        return o
    t = <Tensor>o
    plain = _among(o, ctx.non_differentiable)
    if record or plain:
        t.bits &= ~DERIVED
    differentiable = record and not plain and is_inexact(t.tid)
    if _among(o, ctx.dirty) and _among(o, args):
        _set_dirty(ctx, args, t, i, n, differentiable)
        return alias(t) if plain and needs_grad(t) else t
    if _among(o, args) or (differentiable and needs_grad(t) and t.node is not ctx):
        t = _window(<Tensor>o)
    if not differentiable:
        set_meta(ctx, i, t)
        if plain:
            t.bits &= ~REQUIRES_GRAD
        return t
    if t.bits & DIFF_VIEW and t.base is not None:
        _forbid_inplace(t, ctx, n)
    give_history(ctx, i, t, own)
    return t


cdef Tensor _window(Tensor o):
    """A view of all of o, which keeps its own history."""
    cdef Tensor t = alias(o)
    set_base(t, <Tensor>o.base if o.bits & DIFF_VIEW else o, FRESH)
    t.bits |= DIFF_VIEW
    t.view_version = version_of(o)
    if state().in_forward and (needs_grad(o) or o.bits & DERIVED):
        t.bits |= DERIVED
    return t


cdef int _set_dirty(FunctionNode ctx, tuple args, Tensor t, int i, int n, bint differentiable) except -1:
    """An input that forward wrote to: it now comes from this node."""
    cdef PyObject *target = <PyObject *>t
    bump(t)
    note_mutation(t)
    if not state().no_grad:
        check_targets(&target, 1, differentiable, n, ctx.name())
    if differentiable:
        rewrite(ctx, i, t, _edge_of(ctx, args, t))
    else:
        set_meta(ctx, i, t)
    return 0


cdef int _edge_of(FunctionNode ctx, tuple args, Tensor t) noexcept:
    """Number of the edge that t, one of the arguments, has: edges belong to tensors only."""
    cdef int i, e = 0
    for i in range(ctx.ninputs):
        if args[i] is t:
            break
        e += ctx.inputs[i] & IS_TENSOR
    return e


cdef bint _among(object o, tuple row) noexcept:
    """Whether the very object stands in a row."""
    if row is not None:
        for item in row:
            if item is o:
                return True
    return False


cdef int _forbid_inplace(Tensor t, FunctionNode ctx, int n) except -1:
    """A view made inside forward: its base knows nothing of this node, so a later in-place write must be refused."""
    if t.extra is None:
        t.extra = {}
    t.extra["made_by"] = (ctx.name(), n)
    t.view_version = version_of(t)
    return 0


cdef int _check_dirty(FunctionNode ctx, tuple args, tuple outputs) except -1:
    for i, t in enumerate(ctx.dirty):
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{ctx.name()}: mark_dirty can only accept variables, but argument {i} is of type {type(t).__name__}")
        if not _among(t, args):
            _warn(f"{ctx.name()}: mark_dirty received a tensor that was not an input, so the mark does nothing. Mark the inputs "
                  "that forward writes to.")
        elif not _among(t, outputs):
            raise RuntimeError(f"{ctx.name()}: an input has been marked as dirty but was not returned as output. Please return "
                               "every input that forward modifies in place.")
    return 0


cdef int _check_plain(FunctionNode ctx, tuple outputs) except -1:
    for t in ctx.non_differentiable:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{ctx.name()}: mark_non_differentiable only accepts variable arguments, but got {type(t).__name__}")
        if not _among(t, outputs):
            _warn(f"{ctx.name()}: mark_non_differentiable received a tensor that is not an output of forward, so the mark does "
                  "nothing. Mark the very tensor that is returned.")
    return 0


cdef int _warn(str text) except -1:
    import warnings
    warnings.warn(text, UserWarning, stacklevel=2)
    return 0
