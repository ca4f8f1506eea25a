# cython: language_level=3
"""Node: one step of the backward graph, and how tensors hang on it.

Ownership runs one way, from newer to older: a tensor owns its node, a node owns its edges' nodes and what it
saved, an AccumulateGrad owns its leaf and the leaf only points back. A saved output would close a circle, so
a detached alias is saved in its place. Trashcan keeps the freeing of a long chain off the C stack.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free, malloc
from tinygrad_ext.core.dispatch cimport (
    P_GRAD, P_GRADS, P_INPUT, P_NEEDS, P_RESULT, Rule, state,
)
from tinygrad_ext.core.dtype cimport ITEMSIZE, device_of, dtype, dtype_of, make_size
from tinygrad_ext.core.tensor cimport (
    DETACHED_VIEW, DIFF_VIEW, INFERENCE, REQUIRES_GRAD, alias, needs_grad, shape_text, version_of, dtype_title,
)

from collections import namedtuple

cdef extern from "Python.h":
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)

cdef extern from "frames.h":
    int tgx_line_of(tgx_place place)
    void tgx_set_package_folder(object folder)
    tgx_place tgx_here()

ctypedef int (*visitproc)(PyObject *o, void *arg)
cdef extern from *:
    """
    typedef int (*tgx_traverse)(PyObject *, visitproc, void *);
    #define TGX_TYPE(o) ((PyTypeObject *)(o))
    """
    ctypedef int (*traverseproc "tgx_traverse")(PyObject *o, visitproc visit, void *arg) noexcept
    ctypedef int (*inquiry)(PyObject *o) noexcept
    ctypedef struct CType "PyTypeObject":
        traverseproc tp_traverse
        inquiry tp_clear
    CType *TGX_TYPE(object t)

InputMetadata = namedtuple("InputMetadata", "shape dtype device")

cdef uint64_t _seq = 0
cdef dict _slots = {}


def set_slot(name, fn):
    """Functions of the layers above that the graph needs: zeros, add, sum_to, restride, copy_strided, clone."""
    _slots[name] = fn


def get_slot(name):
    """The function in a slot."""
    return _slots[name]


def set_package_folder(folder):
    """Frames of files below this folder are not the user's."""
    tgx_set_package_folder(folder)


cdef tgx_place here() noexcept:
    return tgx_here()


cdef object slot(str name):
    return _slots[name]


cdef uint64_t next_seq() noexcept:
    global _seq
    _seq += 1
    return _seq


@cython.final
cdef class Hooks:
    pass


# ---- Node ----------------------------------------------------------------------------------------------------------

cdef bint _is_plain(object v) noexcept:
    """A number, shape or dtype, which costs nothing to keep."""
    if isinstance(v, (tuple, list)):
        for item in v:
            if not _is_plain(item):
                return False
        return True
    return v is None or isinstance(v, (int, float, complex, str, dtype))


@cython.freelist(512)
@cython.trashcan(True)
cdef class Node:
    """A step of the backward graph."""

    def __cinit__(self):
        self.edges = self.inline_edges
        self.saved = self.inline_saved
        self.versions = self.inline_versions
        self.metas = &self.inline_meta
        self.inline_meta.sizes = self.inline_meta.inline_sizes

    def __dealloc__(self):
        cdef int i
        for i in range(self.nsaved):
            Py_XDECREF(self.saved[i])
        for i in range(self.nedges):
            Py_XDECREF(self.edges[i].node)
        self.nedges = 0
        if self.edges != self.inline_edges:
            free(self.edges)
        if self.saved != self.inline_saved:
            free(self.saved)
            free(self.versions)
        for i in range(self.noutputs):
            if self.metas[i].sizes != self.metas[i].inline_sizes:
                free(self.metas[i].sizes)
        if self.metas != &self.inline_meta:
            free(self.metas)
        free(self.counts)
        Py_XDECREF(self.place.code)

    cdef void release(self) noexcept:
        """Let go of the tensors saved for backward. A node that saved none can be run again, as in PyTorch."""
        cdef int i
        cdef PyObject *o
        for i in range(self.nsaved):
            o = self.saved[i]
            if o != NULL and not _is_plain(<object>o):
                self.released = True
                self.saved[i] = NULL
                Py_XDECREF(o)

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        """Gradients of the inputs from those of the outputs: results[e] for edge e, where needed[e]."""
        cdef Op op = self.op
        cdef int r, k, e, first
        cdef bint wanted
        cdef Rule *rule
        cdef object got
        if self.released:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                f"already been freed): {self.name()} let go of its saved tensors in the first backward. Specify "
                "retain_graph=True in the first call if you need to backward twice.")
        for r in range(op.nrules):
            rule = &op.rules[r]
            wanted = False
            for k in range(rule.ntargets):
                first = self._first_edge(rule.targets[k])
                for e in range(first, first + self._edge_count(rule.targets[k])):
                    if needed[e]:
                        wanted = True
            if not wanted:
                continue
            if rule.identity:
                got = <object>grads[0]
            else:
                got = self._call_rule(rule, grads, needed)
            if rule.ntargets == 1:
                self._deliver(rule.targets[0], got, results, needed)
            else:
                if not isinstance(got, (tuple, list)) or len(got) != rule.ntargets:
                    raise RuntimeError(f"{self.name()}: the derivative rule of {op.name} must return {rule.ntargets} "
                                       f"gradients, got {type(got).__name__}")
                for k in range(rule.ntargets):
                    self._deliver(rule.targets[k], got[k], results, needed)
        return 0

    cdef int _first_edge(self, int tensor) noexcept:
        cdef int i, at = 0
        if self.counts == NULL:
            return tensor
        for i in range(tensor):
            at += self.counts[i]
        return at

    cdef int _edge_count(self, int tensor) noexcept:
        return 1 if self.counts == NULL else self.counts[tensor]

    cdef int _deliver(self, int tensor, object got, PyObject **results, const unsigned char *needed) except -1:
        cdef int e, first = self._first_edge(tensor), count = self._edge_count(tensor)
        if self.counts != NULL and isinstance(got, (tuple, list)):
            if len(got) != count:
                raise RuntimeError(f"{self.name()}: expected {count} gradients for a list of tensors, got {len(got)}")
            for e in range(count):
                if needed[first + e] and got[e] is not None:
                    Py_INCREF(got[e])
                    results[first + e] = <PyObject *>got[e]
            return 0
        if got is not None and needed[first]:
            Py_INCREF(got)
            results[first] = <PyObject *>got
        return 0

    cdef object _call_rule(self, Rule *rule, PyObject **grads, const unsigned char *needed):
        cdef PyObject *params[24]
        cdef list kept = []
        cdef int i, code
        cdef object v
        for i in range(rule.nparams):
            code = rule.params[i]
            if code & 0xff00 == P_GRAD:
                if grads[code & 0xff] != NULL:
                    params[i] = grads[code & 0xff]
                    continue
                v = zeros_for(self, code & 0xff)
            elif code & 0xff00 == P_GRADS:
                v = tuple([<object>grads[k] if grads[k] != NULL else zeros_for(self, k) for k in range(self.noutputs)])
            elif code & 0xff00 == P_NEEDS:
                v = tuple([needed[self._first_edge(k)] != 0 for k in range(self.op.ntensors)])
            else:
                v = self._unpack(code)
            kept.append(v)
            params[i] = <PyObject *>v
        return PyObject_Vectorcall(<object>rule.fn, params, rule.nparams, NULL)

    cdef object _unpack(self, int code):
        """A saved value by its parameter code; checks that nobody wrote to it since."""
        cdef int i = 0
        cdef Tensor t, fresh
        for i in range(self.op.nsaved):
            if self.op.saved[i] == code:
                break
        if self.saved[i] == NULL:
            return None
        v = <object>self.saved[i]
        if not isinstance(v, Tensor):
            if isinstance(v, (list, tuple)) and self.counts != NULL:
                _check_list(self, v, i)
            return v
        t = <Tensor>v
        if version_of(t) != self.versions[i]:
            raise version_error(self, t, self.versions[i])
        if code & 0xff00 == P_RESULT and not state().no_grad:
            fresh = alias(t)
            fresh.node = self
            fresh.output_nr = code & 0xff
            return fresh
        return t

    # ---- what users see

    def name(self):
        """Name as PyTorch shows it, such as 'AddBackward0'."""
        return self.op.node_type if self.op is not None else type(self).__name__

    def __repr__(self):
        return f"<{self.name()} object at {<size_t><PyObject *>self:#x}>"

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot pickle '{self.name()}' object: a graph lives in memory only. Save the tensors, without their "
                        "history.")

    def _sequence_nr(self):
        return self.seq

    @property
    def next_functions(self):
        """((node, input number), ...) of the inputs; (None, 0) where no gradient is wanted."""
        return tuple([(<object>self.edges[i].node, self.edges[i].nr) if self.edges[i].node != NULL else (None, 0)
                      for i in range(self.nedges)])

    @property
    def metadata(self):
        """A dict of one's own for notes on this node."""
        if self.metadata_ is None:
            self.metadata_ = {}
        return self.metadata_

    @property
    def _input_metadata(self):
        """(shape, dtype, device) of each output of the forward, which is what a gradient must fit; None for no tensor."""
        return tuple([InputMetadata(make_size(self.metas[i].sizes, self.metas[i].rank), dtype_of(self.metas[i].tid),
                                    device_of(self.metas[i].place)) if self.metas[i].rank >= 0 else None
                      for i in range(self.noutputs)])

    def _saved(self):
        """Saved values by name, checked for later writes; for debugging and tests."""
        return {i: <object>self.saved[i] if self.saved[i] != NULL else None for i in range(self.nsaved)}

    def __getattr__(self, name):
        cdef int i, code
        if name.startswith("_saved_") and self.op is not None:
            if self.released:
                raise RuntimeError("Trying to backward through the graph a second time (or directly access saved tensors "
                                   "after they have already been freed)")
            for i in range(self.op.nsaved):
                code = self.op.saved[i]
                if (code & 0xff00 == P_INPUT and "_saved_" + <object>self.op.args[code & 0xff].name == name) or (
                        code & 0xff00 == P_RESULT and name == "_saved_result"):
                    return self._unpack(code)
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def register_hook(self, fn):
        """Call fn(grad_inputs, grad_outputs) after this node has run; a returned tuple replaces grad_inputs."""
        h = _hooks(self)
        if h.post is None:
            h.post = []
        return _handle(h.post, fn)

    def register_prehook(self, fn):
        """Call fn(grad_outputs) before this node runs; a returned tuple replaces them."""
        h = _hooks(self)
        if h.pre is None:
            h.pre = []
        return _handle(h.pre, fn)

    def _register_tensor_hook(self, int nr, fn):
        h = _hooks(self)
        if h.tensor is None:
            h.tensor = {}
        return _handle(h.tensor.setdefault(nr, []), fn)

    def _retain(self, int nr, reference):
        h = _hooks(self)
        if h.retain is None:
            h.retain = {}
        h.retain[nr] = reference


cdef Hooks _hooks(Node n):
    if n.hooks is None:
        n.hooks = Hooks()
    return n.hooks


cdef object _handle(list hooks, fn):
    return _slots["handle"](hooks, fn)


cdef int _traverse(PyObject *o, visitproc visit, void *arg) noexcept:
    cdef Node n = <Node>o
    cdef int i, code
    code = _plain_traverse(o, visit, arg)
    for i in range(n.nedges):
        if code == 0 and n.edges[i].node != NULL:
            code = visit(n.edges[i].node, arg)
    for i in range(n.nsaved):
        if code == 0 and n.saved[i] != NULL:
            code = visit(n.saved[i], arg)
    return code


cdef traverseproc _plain_traverse = TGX_TYPE(Node).tp_traverse
TGX_TYPE(Node).tp_traverse = _traverse


# ---- building ------------------------------------------------------------------------------------------------------

cdef int reserve(Node n, int nedges, int noutputs, int nsaved) except -1:
    cdef int i
    if nedges > INLINE_EDGES:
        n.edges = <Edge *>malloc(nedges * sizeof(Edge))
    if nsaved > INLINE_SAVED:
        n.saved = <PyObject **>malloc(nsaved * sizeof(PyObject *))
        n.versions = <uint32_t *>malloc(nsaved * sizeof(uint32_t))
    if noutputs > 1:
        n.metas = <Meta *>calloc(noutputs, sizeof(Meta))
        for i in range(noutputs):
            n.metas[i].sizes = n.metas[i].inline_sizes
    for i in range(nedges):
        n.edges[i].node = NULL
        n.edges[i].nr = 0
    for i in range(nsaved):
        n.saved[i] = NULL
    n.nedges, n.noutputs, n.nsaved = nedges, noutputs, nsaved
    return 0


cdef int set_meta(Node n, int nr, Tensor t) except -1:
    cdef Meta *m = &n.metas[nr]
    cdef int i
    if t.rank > INLINE_DIMS:
        m.sizes = <int64_t *>malloc(t.rank * sizeof(int64_t))
    for i in range(t.rank):
        m.sizes[i] = t.sizes[i]
    m.rank, m.tid, m.place = t.rank, t.tid, t.place
    return 0


cdef object zeros_for(Node n, int nr):
    """Zeros in the shape of output nr."""
    cdef Meta *m = &n.metas[nr]
    return _slots["zeros"](make_size(m.sizes, m.rank), dtype_of(m.tid), device_of(m.place))


cdef Node accumulator(Tensor leaf):
    """The leaf's AccumulateGrad, made when first needed."""
    cdef AccumulateGrad a
    if leaf.accumulator != NULL:
        return <Node>leaf.accumulator
    a = AccumulateGrad.__new__(AccumulateGrad)
    reserve(a, 0, 1, 0)
    set_meta(a, 0, leaf)
    a.variable = leaf
    a.seq = next_seq()
    leaf.accumulator = <void *>a
    if leaf.extra is not None and "hooks" in leaf.extra:
        a.hooks = leaf.extra["hooks"]
    return a


cdef int gradient_edge(Tensor t, Edge *into) except -1:
    """Where t's gradient goes: its grad_fn, or its accumulator; nowhere when it needs none."""
    cdef object n
    if t.node is not None:
        n = grad_fn_of(t) if t.bits & DIFF_VIEW else t.node
        into.nr = t.output_nr
    elif t.bits & REQUIRES_GRAD:
        n = accumulator(t)
        into.nr = 0
    else:
        into.node = NULL
        return 0
    Py_INCREF(n)
    into.node = <PyObject *>n
    return 0


cdef object grad_fn_of(Tensor t):
    """t's node; a view whose base was written to since gets a new one, made by restriding the base."""
    cdef Tensor base, fresh
    if t.bits & DIFF_VIEW and t.base is not None and t.view_version != version_of(t):
        base = <Tensor>t.base
        # (the same bytes viewed in another dtype have no derivative)
        if t.tid == base.tid and needs_grad(base) and (t.node is not None or base.node is not None):
            offset = (t.data - base.data) // ITEMSIZE[t.tid]
            was = state().no_grad
            state().no_grad = 0
            try:
                fresh = _slots["restride"](base, make_size(t.sizes, t.rank), tuple([t.strides[i] for i in range(t.rank)]),
                                           base.storage_offset() + offset)
            finally:
                state().no_grad = was
            t.node, t.output_nr = fresh.node, fresh.output_nr
        t.view_version = version_of(t)
    return t.node


# ---- in-place ------------------------------------------------------------------------------------------------------

cdef int check_inplace(Tensor t) except -1:
    """Refuse in-place ops (under grad mode) that would lose a gradient."""
    if t.bits & INFERENCE and not state().inference:
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to "
                           "get a normal tensor before doing inplace update.")
    if t.extra is not None and "made_by" in t.extra:
        name, count = t.extra["made_by"]
        raise RuntimeError(f"Output of {name} is a view and is being modified inplace. This view was created inside a custom "
                           "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
                           "override the custom backward" + (", and the function returned multiple views" if count > 1 else "")
                           + ". Return a clone of it.")
    if t.node is None and t.bits & REQUIRES_GRAD:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation. "
                           "Wrap the update in no_grad(), or work on a clone.")
    if t.bits & DIFF_VIEW and t.base is not None and (needs_grad(t) or needs_grad(<Tensor>t.base)):
        if (<Tensor>t.base).node is None:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation. "
                               "Wrap the update in no_grad(), or work on a clone.")
        if t.bits & DETACHED_VIEW:
            raise RuntimeError("A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
                               "Make the view in the same mode as the update.")
    return 0


cdef int rebase(Tensor t, Node n) except -1:
    """After an in-place op recorded as n: t (and the base it is a view of) now come from n."""
    cdef CopySlices c
    cdef Tensor base
    cdef int i
    if not (t.bits & DIFF_VIEW and t.base is not None):
        t.node, t.output_nr = n, 0
        return 0
    base = <Tensor>t.base
    c = CopySlices.__new__(CopySlices)
    reserve(c, n.nedges if n.nedges else 1, 1, 0)
    gradient_edge(base, &c.edges[0])
    for i in range(1, n.nedges):
        c.edges[i] = n.edges[i]
        if c.edges[i].node != NULL:
            Py_INCREF(<object>c.edges[i].node)
    set_meta(c, 0, base)
    c.fn = n
    c.base_like, c.view_like = alias(base), alias(t)
    c.offset = (t.data - base.data) // ITEMSIZE[t.tid]
    for like in (c.base_like, c.view_like):
        (<Tensor>like).storage = None
    c.place = n.place
    if c.place.code != NULL:
        Py_INCREF(<object>c.place.code)
    c.seq = next_seq()
    base.node, base.output_nr = c, 0
    # one less than the version after the bump: the view's own node is made anew when it is asked for
    t.node, t.output_nr = n, 0
    t.view_version = version_of(t) - 1
    return 0


@cython.no_gc_clear       # the way to the leaf must last until __dealloc__
cdef class AccumulateGrad(Node):
    """Adds what arrives to the `.grad` of a leaf."""

    def __dealloc__(self):
        if self.variable is not None:
            self.variable.accumulator = NULL


cdef class CopySlices(Node):
    """Backward of an in-place op on a view, seen from the base."""

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        cdef Tensor b = self.base_like, v = self.view_like
        cdef PyObject *inner[1]
        grad = _slots["copy_strided"](<object>grads[0], make_size(b.sizes, b.rank), b.stride())
        window = _slots["restride"](grad, make_size(v.sizes, v.rank), v.stride(), self.offset)
        slice_grad = _slots["clone"](window)
        inner[0] = <PyObject *>slice_grad
        Py_INCREF(slice_grad)           # fn may take it over
        try:
            self.fn.apply(inner, results, needed)
        finally:
            Py_XDECREF(inner[0])
        if results[0] == NULL:
            _slots["zero_"](window)
        else:
            _slots["copy_"](window, <object>results[0])
            Py_DECREF(<object>results[0])
            results[0] = NULL
        if needed[0]:
            Py_INCREF(grad)
            results[0] = <PyObject *>grad
        return 0

    cdef void release(self) noexcept:
        if self.fn is not None:
            self.fn.release()
            self.released = self.fn.released

    def name(self):
        return "CopySlices"


# ---- where things were written ------------------------------------------------------------------------------------

cdef enum:
    RING = 256

cdef struct Mutation:
    size_t storage
    uint32_t version
    tgx_place place

cdef Mutation[RING] _ring
cdef int _ring_at = 0


cdef int watch(Tensor t) except -1:
    """A graph saved t: from now on in-place ops on its storage note their place."""
    if t.storage is not None:
        t.storage.watched = 1
    return 0


cdef int note_mutation(Tensor t) except -1:
    """Remember that t was written to just now (call it after the bump)."""
    global _ring_at
    cdef Mutation *m
    if t.storage is None or not t.storage.watched:
        return 0
    m = &_ring[_ring_at % RING]
    _ring_at += 1
    Py_XDECREF(m.place.code)
    m.storage, m.version, m.place = <size_t><PyObject *>t.storage, version_of(t), tgx_here()
    return 0


cdef str place_text(tgx_place p):
    if p.code == NULL:
        return "an unknown line"
    code = <object>p.code
    return f"{code.co_filename}:{tgx_line_of(p)} in {code.co_name}"


def place_of(Node n):
    """File, line and function where the user made the node, as text."""
    return place_text(n.place)


cdef object version_error(Node n, Tensor t, uint32_t expected):
    """The error for a saved tensor that was written to."""
    cdef int i
    cdef str where = "a line no longer remembered"
    for i in range(RING):
        if t.storage is not None and _ring[i].storage == <size_t><PyObject *>t.storage and _ring[i].version == expected + 1:
            where = place_text(_ring[i].place)
    origin = f"output {t.output_nr} of {t.node.name()}" if t.node is not None else "a leaf"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{dtype_title(t.tid)}Tensor {shape_text(t)}], which is {origin}, is at version {version_of(t)}; expected "
        f"version {expected} instead.\nSaved for {n.name()} at {place_text(n.place)}.\nModified at {where}.\n"
        "Do not change the tensor before backward, or change a clone of it.")


cdef int _check_list(Node n, object values, int i) except -1:
    cdef uint32_t total = 0
    for v in values:
        if isinstance(v, Tensor):
            total += version_of(<Tensor>v)
    if total != n.versions[i]:
        for v in values:
            if isinstance(v, Tensor) and version_of(<Tensor>v):
                raise version_error(n, <Tensor>v, version_of(<Tensor>v) - 1)
    return 0
