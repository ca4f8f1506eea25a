# cython: language_level=3
"""The call of an op that is computed by a Python function from elsewhere.

Such an op differs from the built-in ones in three ways. Its kernel is not trusted (guard.pyx). It may write to its
arguments, which counts as one mutation of each. And its derivative may be a `backward` with a `setup_context`: then
the call is a step of the graph like that of an autograd.Function. Its outputs are, in this order, the arguments it
writes to and what it returns beside them, so that a backward for in-place and `out=` ops needs no words of its own;
its inputs are the positional arguments, lists of tensors laid out flat.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport (
    COMPOSITE, MAX_ARGS, Op, any_away, any_needs_grad, mark_derived, run_python, state, tgx_state,
)
from tinygrad_ext.core.grad.custom cimport Custom
from tinygrad_ext.core.grad.function cimport NEEDS_GRAD, FunctionNode
from tinygrad_ext.core.grad.guard cimport check_hidden, convert, run_guarded
from tinygrad_ext.core.grad.history cimport check_targets, give_history, rewrite
from tinygrad_ext.core.grad.node cimport reserve_outputs, set_meta
from tinygrad_ext.core.call.outputs cimport check_readonly
from tinygrad_ext.core.call.places cimport GUARDED, note_mutation
from tinygrad_ext.core.grad.record cimport record
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.tensor cimport DERIVED, Tensor, set_version, version_of
from tinygrad_ext.core.data.types cimport A_TENSOR, F_WRITE, is_inexact, uint32_t

cdef extern from *:
    """
    #define TGX_LIST_ITEMS(row) (((PyListObject *)(row))->ob_item)
    """
    PyObject **TGX_LIST_ITEMS(list row)


cdef class CustomCall(Custom):
    """Such an op, as the dispatcher calls it."""

    cdef object call(self, Op op, PyObject **args):
        return _call(op, args)

    cdef object run(self, Op op, PyObject **args):
        """The kernel alone, on arguments as they were bound."""
        if self.values:
            _owners = convert(self, args)
        return _run(op, args)


cdef object _run(Op op, PyObject **args):
    """The kernel alone, watched; meta tensors go by the shape rule. A composite is as good as the ops it calls."""
    if op.kind == COMPOSITE:
        return run_python(op, args)
    if (<Custom>op.custom).lists:
        return _run_on_copies(<Custom>op.custom, args)
    if any_away(op, args):
        return run_python(op, args)
    return run_guarded(<Custom>op.custom, args)


cdef inline bint _is_list(Op op, int i, object o):
    """Whether an argument is a list of tensors."""
    return op.args[i].kind == A_TENSOR and isinstance(o, (list, tuple))


cdef object _run_on_copies(Custom c, PyObject **args):
    """As _run, with lists that only the kernel has: what it does to them changes neither the caller's nor ours."""
    cdef PyObject *given[MAX_ARGS]
    cdef Op op = c.op
    cdef list own = []
    cdef int i
    for i in range(op.nargs):
        given[i] = args[i]
        o = <object>args[i]
        if _is_list(op, i, o):
            copy = list(o)
            own.append(copy)
            given[i] = <PyObject *>copy
    result = run_python(op, given) if any_away(op, given) else run_guarded(c, given)
    for i in range(c.nwrites):
        o = <object>args[c.writes[i]]
        if not _is_list(op, c.writes[i], o):
            continue
        copy = <object>given[c.writes[i]]
        if len(copy) != len(o) or any([a is not b for a, b in zip(copy, o)]):
            raise RuntimeError(f"{op.name}: the kernel put other tensors into the list '{<object>op.args[c.writes[i]].name}'; it may "
                               "only write into those that are there, with copy_() or another in-place op")
    return result


cdef list keep_lists(Custom c, PyObject **args):
    """Replace lists of tensors by tuples, which stay as they are whatever the kernel does. Returns the owners."""
    cdef list owners = []
    cdef int i
    for i in range(c.op.nargs):
        o = <object>args[i]
        if _is_list(c.op, i, o):
            owners.append(tuple(o))
            args[i] = <PyObject *>owners[len(owners) - 1]
    return owners


cdef object _call(Op op, PyObject **args):
    """Autograd and kernel."""
    cdef Custom c = <Custom>op.custom
    cdef tgx_state *st = state()
    cdef bint recording
    cdef list _owners, _lists
    if c.values:
        _owners = convert(c, args)       # keeps them alive
    if op.kind == COMPOSITE:
        return run_python(op, args)
    if c.lists:
        _lists = keep_lists(c, args)
    if c.values:
        check_hidden(op, args)
    recording = not st.no_grad and any_needs_grad(op, args)
    if c.nwrites:
        return _call_writing(c, args, recording)
    if not recording:
        result = _run(op, args)
        if st.in_forward:
            mark_derived(op, args, result)
        return result
    if c.plan is None:
        return record(op, args, NULL, False)
    return _record(c, args, None, None)


# ---- ops that write to their arguments -----------------------------------------------------------------------------

cdef object _call_writing(Custom c, PyObject **args, bint recording):
    cdef tgx_state *st = state()
    cdef list written = _written(c, args)
    cdef list versions = []
    _check_written(c, written, recording)
    for t in written:
        versions.append(version_of(<Tensor>t))
    if recording:
        return _record(c, args, written, versions)
    result = _run_writing(c, args, written, versions)
    if st.in_forward:
        mark_derived(c.op, args, (written, result))
        for t in written:
            if (<Tensor>t).bits & DERIVED and (<Tensor>t).base is not None:
                (<Tensor>(<Tensor>t).base).bits |= DERIVED
    return result


cdef list _written(Custom c, PyObject **args):
    cdef int i
    cdef list found = []
    for i in range(c.nwrites):
        o = <object>args[c.writes[i]]
        if isinstance(o, Tensor):
            found.append(o)
        elif o is not None:
            found += o
    return found


cdef int _check_written(Custom c, list written, bint recording) except -1:
    cdef Tensor t
    for t in written:
        check_readonly(t, c.op.title)
    if not state().no_grad:
        check_targets(TGX_LIST_ITEMS(written), len(written), recording, len(written) + c.nfresh, c.op.name)
    for t in written:
        if t.storage is not None and t.storage.watched & GUARDED:
            slot("before_write")(<size_t><PyObject *>t.storage)
    return 0


cdef object _run_writing(Custom c, PyObject **args, list written, list versions):
    """Run the kernel; it counts as one mutation of each tensor, whatever it did inside."""
    try:
        return _run(c.op, args)
    finally:
        for t, version in zip(written, versions):
            set_version(<Tensor>t, <uint32_t>version + 1)
            note_mutation(<Tensor>t)


# ---- autograd ------------------------------------------------------------------------------------------------------

cdef class OpNode(FunctionNode):
    """ctx of setup_context and backward, and the node of the call."""

    def nested_grads(self, grads):
        """The gradients of the outputs, in lists where the outputs were lists."""
        return _nested(grads, self.output_counts)

    def flat_grads(self, got):
        """One gradient for each tensor or other value among the inputs, from what backward returned."""
        cdef list flat = []
        names = self._names()
        if len(names) == 1 and isinstance(got, (tuple, list)) and self._is_bare(got):
            got = (got,)
        if isinstance(got, dict):
            unknown = [n for n in got if n not in names]
            if unknown:
                raise RuntimeError(f"function {self.name()} returned a gradient for '{unknown[0]}', which is no positional "
                                   f"argument of the op ({', '.join(names)})")
            got = [got.get(n) for n in names]
        elif not isinstance(got, (tuple, list)):
            got = (got,)
        if len(got) != len(names):
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {len(names)}, got "
                               f"{len(got)}): one for each of {', '.join(names)}, a list of them where the argument is a list")
        for name, count, g in zip(names, self.input_counts, got):
            if count < 0:
                flat.append(g)
            elif g is None:
                flat += [None] * count
            elif not isinstance(g, (list, tuple)) or len(g) != count:
                raise RuntimeError(f"function {self.name()}: argument '{name}' is a list of {count} tensors, so its gradient must be "
                                   f"a list of {count} tensors or None, not {type(g).__name__}"
                                   f"{f' of {len(g)}' if isinstance(g, (list, tuple)) else ''}")
            else:
                flat += g
        return tuple(flat)

    def _is_bare(self, got):
        """Whether got is the gradients of the op's only argument, a list, rather than a row that holds that list."""
        return self.input_counts[0] >= 0 and len(got) == self.input_counts[0] and not (
            len(got) == 1 and (got[0] is None or isinstance(got[0], (tuple, list))))

    def _names(self):
        cdef int i
        return [<object>self.custom.op.args[i].name for i in range(self.custom.op.npositional)]


cdef object _nested(row, counts):
    """Items of a flat row, those that belong together as lists; counts: how many, -1 for a single one."""
    cdef list found = []
    cdef Py_ssize_t at = 0, count
    for count in counts:
        if count < 0:
            found.append(row[at])
            at += 1
        else:
            found.append(list(row[at:at + count]))
            at += count
    return found


cdef object _record(Custom c, PyObject **args, list written, list versions):
    """Run the op as one step of the graph."""
    cdef OpNode ctx = OpNode.__new__(c.node_type)
    cdef object result
    ctx.custom, ctx.plan = c, c.plan
    if c.lists:
        _connect_lists(ctx, args)
    else:
        ctx.nwanted = c.op.npositional
        ctx.take_inputs(args, c.op.npositional, _count_outs(c, args), True)
    if written is None:
        result = _run(c.op, args)
    else:
        result = _run_writing(c, args, written, versions)
    if c.setup is not None:
        _set_up(c, ctx, args, result)
    _give_history(c, ctx, args, result)
    ctx.seal(True)
    return result


cdef int _count_outs(Custom c, PyObject **args) except -1:
    """Tensors among the keyword-only arguments that are written to: each has an edge that stays empty."""
    cdef int i, count = 0
    for i in range(c.nwrites):
        if c.writes[i] >= c.op.npositional:
            o = <object>args[c.writes[i]]
            count += len(o) if isinstance(o, (list, tuple)) else isinstance(o, Tensor)
    return count


cdef int _edge_of(Custom c, PyObject **args, Tensor t) except -1:
    """Number of the edge of t, an argument that was written to."""
    cdef int i, e = 0
    for i in range(c.op.nargs):
        o = <object>args[i]
        if i >= c.op.npositional and not c.op.args[i].flags & F_WRITE:
            continue
        for item in o if c.op.args[i].kind == A_TENSOR and isinstance(o, (list, tuple)) else (o,):
            if item is t:
                return e
            e += isinstance(item, Tensor)
    return e


cdef int _connect_lists(OpNode ctx, PyObject **args) except -1:
    cdef int i
    cdef Op op = ctx.custom.op
    cdef list flat = [], counts = [], names = []
    for i in range(op.npositional):
        o, name = <object>args[i], <object>op.args[i].name
        if op.args[i].kind == A_TENSOR and isinstance(o, (list, tuple)):
            _lay_flat(o, flat, counts)
            names += [f"{name}[{k}]" for k in range(len(o))]
        else:
            counts.append(-1)
            names.append(name)
            flat.append(o)
    ctx.nwanted, ctx.input_counts, ctx.extra_names = len(flat), tuple(counts), tuple(names)
    ctx.take_inputs(TGX_LIST_ITEMS(flat), len(flat), _count_outs(ctx.custom, args), True)
    ctx.needs_input_grad_ = tuple(_nested([(ctx.inputs[i] & NEEDS_GRAD) != 0 for i in range(len(flat))], counts))
    return 0


cdef object _shown(Op op, int i, object o):
    """An argument as setup_context sees it: lists are lists."""
    return list(o) if _is_list(op, i, o) else o


cdef int _set_up(Custom c, OpNode ctx, PyObject **args, object result) except -1:
    """Call setup_context(ctx, inputs, output), or (ctx, inputs, keyword_only_inputs, output)."""
    cdef tgx_state *st = state()
    cdef unsigned char was = st.no_grad
    cdef Op op = c.op
    cdef int i
    inputs = tuple([_shown(op, i, <object>args[i]) for i in range(op.npositional)])
    st.no_grad = 1
    try:
        if c.keyword_inputs:
            keywords = {<object>op.args[i].name: _shown(op, i, <object>args[i]) for i in range(op.npositional, op.nargs)}
            got = c.setup(ctx, inputs, keywords, result)
        else:
            got = c.setup(ctx, inputs, result)
    finally:
        st.no_grad = was
    if got is not None:
        raise TypeError(f"{op.name}: setup_context returned {type(got).__name__}; it keeps things on ctx and returns None")
    return 0


cdef int _give_history(Custom c, OpNode ctx, PyObject **args, object result) except -1:
    """Make what was written to and what was returned the outputs of the node."""
    cdef list outputs = [], counts = []
    cdef int i, n, nwritten
    if c.nwrites == 0 and c.nreturns == 1 and isinstance(result, Tensor):
        ctx.output_counts = (-1,)
        _give(ctx, <Tensor>result, 0, -1, 1)
        return 0
    for i in range(c.nwrites):
        _lay_flat(<object>args[c.writes[i]], outputs, counts)
    nwritten = len(outputs)
    for i in range(c.nreturns):
        if c.returns[i].written < 0:
            _lay_flat(result[i] if c.nreturns > 1 else result, outputs, counts)
    n = len(outputs)
    ctx.output_counts = tuple(counts)
    if n != 1:
        reserve_outputs(ctx, n)
    for i in range(n):
        if isinstance(outputs[i], Tensor):
            _give(ctx, <Tensor>outputs[i], i, _edge_of(c, args, <Tensor>outputs[i]) if i < nwritten else -1, 2)
        else:
            ctx.metas[i].rank = -1
    return 0


cdef int _lay_flat(object o, list flat, list counts) except -1:
    if isinstance(o, (list, tuple)):
        counts.append(len(o))
        flat += o
    else:
        counts.append(-1)
        flat.append(o)
    return 0


cdef int _give(OpNode ctx, Tensor t, int nr, int edge, int own) except -1:
    """Make t output nr of the node, where it can carry a gradient. edge: that of an argument written to, else -1."""
    if not is_inexact(t.tid) or _is_marked(ctx, t):
        return set_meta(ctx, nr, t)
    return rewrite(ctx, nr, t, edge) if edge >= 0 else give_history(ctx, nr, t, own)


cdef bint _is_marked(OpNode ctx, Tensor t) noexcept:
    """Whether setup_context said that t carries no gradient."""
    if ctx.non_differentiable is not None:
        for plain in ctx.non_differentiable:
            if plain is t:
                return True
    return False
