# cython: language_level=3
"""The hot path of autograd.Function: one node for each call, which is also the ctx.

`run` binds nothing and knows no style: autograd/function.py hands it the forward to call, the flat tuple of
arguments, and the node. Edges are taken before the forward runs, because the forward may write to its inputs.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from tinygrad_ext.core.dispatch cimport state, tgx_state
from tinygrad_ext.core.history cimport check_inplace, gradient_edge, rebase
from tinygrad_ext.core.node cimport Node, next_seq, reserve, set_meta, slot, zeros_for
from tinygrad_ext.core.places cimport here, note_mutation
from tinygrad_ext.core.saved cimport freed_error, raw, save, unpack
from tinygrad_ext.core.tensor cimport (
    DIFF_VIEW, REQUIRES_GRAD, Tensor, alias, bump, needs_grad, version_of,
)
from tinygrad_ext.core.types cimport TGX_F16

cdef extern from "Python.h":
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)


cdef class FunctionNode(Node):
    """ctx of a Function's forward, and the node of its backward."""

    def __cinit__(self):
        self.materialize_grads = True
        self.needs_input_grad = ()

    # ---- what forward and setup_context call

    def save_for_backward(self, *tensors):
        """Keep tensors (or None) for backward: checked there for later writes. A second call replaces the first."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}. "
                                "Keep other values as attributes of ctx.")
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for jvp."""
        for t in tensors:
            assert t is None or isinstance(t, Tensor), (
                "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.")
        self.for_forward = tensors

    def mark_dirty(self, *tensors):
        """Name the inputs that forward wrote to; they must be returned."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Name the outputs that carry no gradient."""
        self.non_differentiable = tensors

    def mark_shared_storage(self, *pairs):
        import warnings
        warnings.warn("mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that calls "
                      "to `set_()` are not tracked", FutureWarning, stacklevel=2)

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (True) or None (False) for outputs that received no gradient."""
        if not isinstance(value, bool):
            raise TypeError(f"set_materialize_grads(): expected (bool), got ({type(value).__name__})")
        self.materialize_grads = value

    @property
    def saved_tensors(self):
        """What save_for_backward was given."""
        cdef int i
        if self.released:
            raise freed_error(self)
        if self.access_clears:
            if self.accessed:
                raise RuntimeError(f"{self.name()}: saved tensors can only be accessed once when "
                                   "clear_saved_tensors_on_access is set")
            self.accessed = True
        result = tuple([self._unpacked(i) for i in range(self.nsaved)])
        if self.access_clears:
            for i in range(self.nsaved):
                Py_XDECREF(self.saved[i])
                self.saved[i] = NULL
        return result

    @property
    def saved_variables(self):
        import warnings
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def maybe_clear_saved_tensors(self):
        """Let go of the saved tensors now, where the class asked for that."""
        if self.access_clears:
            self.release()

    def _unpacked(self, int i):
        return unpack(self, i, self.output_of[i], True)

    @property
    def _raw_saved_tensors(self):
        """The saved tensors as handles, on which pack and unpack hooks can be registered."""
        return tuple([raw(self, i, self.output_of[i]) for i in range(self.nsaved)])

    def name(self):
        return type(self).__name__

    # ---- backward

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        cdef int i
        cdef list given = []
        if self.released:
            raise freed_error(self)
        for i in range(self.noutputs):
            if grads[i] != NULL:
                given.append(<object>grads[i])
            elif self.materialize_grads and self.metas[i].rank >= 0:
                given.append(zeros_for(self, i))
            else:
                given.append(None)
        versions = [version_of(<Tensor>g) if isinstance(g, Tensor) else 0 for g in given]
        got = self.run_backward(self, *given) if self.run_backward is not None else type(self)._backward(self, *given)
        for g, version in zip(given, versions):
            if isinstance(g, Tensor) and version_of(<Tensor>g) != version:
                raise RuntimeError(f"{self.name()}: backward changed an incoming gradient in place. Others may hold the same "
                                   "tensor: work on grad.clone().")
        got = self._as_row(got)
        for i in range(self.nedges):
            g = got[i]
            if g is None:
                continue
            if not isinstance(g, Tensor):
                raise RuntimeError(f"function {self.name()}: expected Variable or None (got {type(g).__name__}) as gradient of "
                                   f"{self._arg(i)}")
            if needed[i]:
                Py_INCREF(g)
                results[i] = <PyObject *>g
        return 0

    def _arg(self, int i):
        return f"argument '{self.names[i]}'" if self.names is not None and i < len(self.names) else f"argument {i}"

    def _as_row(self, got):
        """The gradients as one for each forward argument; RuntimeError when they do not fit."""
        cdef int i, n = self.nedges
        if isinstance(got, dict):
            unknown = [k for k in got if self.names is None or k not in self.names]
            if unknown:
                raise RuntimeError(f"function {self.name()} returned a gradient for '{unknown[0]}', which is no argument of its "
                                   f"forward ({', '.join(self.names or ())})")
            got = tuple([got.get(k) for k in self.names])
        elif not isinstance(got, tuple):
            got = (got,)
        while len(got) > n and got[len(got) - 1] is None:
            got = got[:len(got) - 1]
        if len(got) != n:
            told = ", ".join([f"{self._arg(i)}: "
                              f"{'a gradient' if i < len(got) and got[i] is not None else 'none' if i < len(got) else 'missing'}"
                              for i in range(max(n, len(got)))])
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {n}, got {len(got)}). "
                               f"One for each argument of forward, None where there is none: {told}")
        for i in range(n):
            if got[i] is not None and not self.is_tensor[i]:
                raise RuntimeError(f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                                   f"corresponding forward input was not a Variable ({self._arg(i)})")
        return got


# ---- forward -------------------------------------------------------------------------------------------------------

def run(FunctionNode ctx, tuple args, forward, tuple forward_args, dict keywords, setup, names):
    """Run a forward under a node.

    args: the flat arguments (edges are made for these); forward is called with forward_args and keywords;
    setup: None, or setup_context. Returns what the caller of apply gets.
    """
    cdef tgx_state *st = state()
    cdef unsigned char was_no_grad = st.no_grad
    cdef bint record = False
    cdef int i, n = len(args)
    cdef object output
    reserve(ctx, n, 1, 0)
    ctx.is_tensor = [False] * n
    ctx.names = names
    needs = []
    for i in range(n):
        a = args[i]
        if isinstance(a, Tensor):
            ctx.is_tensor[i] = True
            needs.append(needs_grad(<Tensor>a))
            if needs[i] and not was_no_grad:
                record = True
                gradient_edge(<Tensor>a, &ctx.edges[i])
        else:
            needs.append(False)
    ctx.needs_input_grad = tuple(needs)
    st.no_grad = 1
    try:
        output = forward(*forward_args, **keywords)
        if setup is not None:
            got = setup(ctx, args, output)
            if got is not None:
                raise TypeError(f"{ctx.name()}: setup_context returned {type(got).__name__}; it keeps things on ctx and returns "
                                "None")
    finally:
        st.no_grad = was_no_grad
    outputs = output if isinstance(output, tuple) else (output,)
    wrapped = _wrap_outputs(ctx, args, outputs, record)
    if record:
        ctx.place = here()
        if st.anomaly:
            ctx.trace = slot("stack")()
        ctx.seq = next_seq()
        _keep_saved(ctx, wrapped)
    ctx.to_save = ctx.dirty = ctx.non_differentiable = None
    return wrapped if isinstance(output, tuple) else wrapped[0]


cdef tuple _wrap_outputs(FunctionNode ctx, tuple args, tuple outputs, bint record):
    """Give the outputs their history."""
    cdef int i, n = len(outputs)
    cdef Tensor t
    cdef list wrapped = []
    cdef set inputs = {id(a) for a in args if isinstance(a, Tensor)}
    cdef set dirty = _ids(ctx, ctx.dirty, "mark_dirty")
    cdef set plain = _ids(ctx, ctx.non_differentiable, "mark_non_differentiable")
    _check_dirty(ctx, dirty, inputs, outputs)
    _reserve_outputs(ctx, n)
    for i in range(n):
        o = outputs[i]
        if not isinstance(o, Tensor):
            ctx.metas[i].rank = -1
            if record and isinstance(o, (list, tuple)) and any([isinstance(x, Tensor) for x in o]):
                raise TypeError(f"{ctx.name()}: forward returned tensors inside a {type(o).__name__}, where their gradients would "
                                "be lost. Return them as one flat tuple.")
            wrapped.append(o)
            continue
        t = <Tensor>o
        set_meta(ctx, i, t)
        differentiable = record and t.tid >= TGX_F16 and id(o) not in plain
        if id(o) in dirty:
            bump(t)
            note_mutation(t)
            if differentiable:
                if t.bits & DIFF_VIEW and n > 1:
                    raise RuntimeError(f"{ctx.name()}: a Function whose input is a view that it modifies in place cannot return more "
                                       "than one Tensor")
                check_inplace(t)
                rebase(t, ctx)
                t.output_nr = i
        elif id(o) in inputs:
            t = alias(t)
            if differentiable:
                t.node, t.output_nr = ctx, i
        elif differentiable:
            if t.bits & DIFF_VIEW and t.base is not None:
                _forbid_inplace(t, ctx, n)
            t.node, t.output_nr = ctx, i
            t.bits &= ~REQUIRES_GRAD
        elif id(o) in plain:
            t.bits &= ~REQUIRES_GRAD
        wrapped.append(t)
    return tuple(wrapped)


cdef int _forbid_inplace(Tensor t, FunctionNode ctx, int n) except -1:
    """A view made inside forward: its base knows nothing of this node, so a later in-place write must be refused."""
    if t.extra is None:
        t.extra = {}
    t.extra["made_by"] = (ctx.name(), n)
    t.bits &= ~DIFF_VIEW
    return 0


cdef set _ids(FunctionNode ctx, tuple tensors, str what):
    if tensors is None:
        return set()
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{ctx.name()}: {what} takes tensors, but argument {i} is {type(t).__name__}")
    return {id(t) for t in tensors}


cdef int _check_dirty(FunctionNode ctx, set dirty, set inputs, tuple outputs) except -1:
    if not dirty:
        return 0
    returned = {id(o) for o in outputs}
    for t in ctx.dirty:
        if id(t) not in inputs:
            import warnings
            warnings.warn(f"{ctx.name()}: a tensor marked as dirty is not an input of forward, so the mark does nothing",
                          UserWarning, stacklevel=3)
        elif id(t) not in returned:
            raise RuntimeError(f"{ctx.name()}: an input has been marked as dirty but was not returned as output. Please return "
                               "every input that forward modifies in place.")
    return 0


cdef int _reserve_outputs(FunctionNode ctx, int n) except -1:
    cdef int nedges = ctx.nedges
    ctx.nedges = ctx.nsaved = 0
    reserve(ctx, 0, n, 0)
    ctx.nedges = nedges
    return 0


cdef int _keep_saved(FunctionNode ctx, tuple outputs) except -1:
    """Move what save_for_backward was given into the node, outputs as detached aliases."""
    cdef int i, n, nedges = ctx.nedges, noutputs = ctx.noutputs
    cdef Tensor t
    if ctx.to_save is None:
        ctx.output_of = []
        return 0
    n = len(ctx.to_save)
    ctx.nedges = ctx.noutputs = 0
    reserve(ctx, 0, 0, n)
    ctx.nedges, ctx.noutputs = nedges, noutputs
    ctx.output_of = [-1] * n
    for i in range(n):
        if ctx.to_save[i] is None:
            continue
        t = <Tensor>ctx.to_save[i]
        if t.node is ctx:
            ctx.output_of[i] = t.output_nr
        save(ctx, i, t, ctx.output_of[i])
    return 0


def prepare(FunctionNode ctx, bint access_clears, run_backward):
    """Settings of the class on a fresh ctx."""
    ctx.access_clears = access_clears
    ctx.run_backward = run_backward
    return ctx
