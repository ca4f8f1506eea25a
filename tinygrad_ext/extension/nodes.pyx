# cython: language_level=3
"""TableNode: a step of the graph whose backward is a function in C.

The engine calls it as it calls any node; no frame of Python lies between. What such a backward computes on raw memory has no
history, so where a second derivative is recorded its results say that there is none; one that computes by `call` alone is
flagged, and its ops are recorded as those of a rule are.

A node may also stand outside of the graph: where a level wants the derivative as functions (graphs, forward mode), its
saved tensors are the level's, and only the state is the node's own.
"""
from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset
from tinygrad_ext.core.call.dispatch cimport TGX_NO_SUBCLASS, state, tgx_state
from tinygrad_ext.core.data.dtype cimport META
from tinygrad_ext.core.data.tensor cimport FRESH, Carried, Tensor, alias, exact, needs_grad
from tinygrad_ext.core.data.tracking cimport PyObject_GC_UnTrack, tgx_unlink
from tinygrad_ext.core.data.types cimport is_inexact
from tinygrad_ext.core.grad.delayed cimport DelayedError, delayed_error
from tinygrad_ext.core.grad.history cimport give_history, keep
from tinygrad_ext.core.grad.node cimport Node, start_untracked, zeros_for
from tinygrad_ext.core.grad.saved cimport freed_error, unpack
from tinygrad_ext.extension.public cimport *

cdef enum:
    FEW = 8                     # gradients served without malloc

ctypedef void (*destructor)(PyObject *o) noexcept

cdef extern from "Python.h":
    void PyErr_Clear()
    void PyErr_Fetch(PyObject **kind, PyObject **error, PyObject **traceback)
    void PyErr_Restore(PyObject *kind, PyObject *error, PyObject *traceback)
    void Py_SET_REFCNT(PyObject *o, Py_ssize_t count)

cdef extern from "own_dealloc.h":
    destructor tgx_own_dealloc(object type, destructor dealloc)
    destructor TGX_DEALLOC(object type)


# ---- errors --------------------------------------------------------------------------------------------------------

_KINDS = (RuntimeError, ValueError, TypeError, IndexError, KeyError, NotImplementedError, MemoryError, OSError, ArithmeticError,
          OverflowError, ZeroDivisionError, FloatingPointError, AssertionError, AttributeError, LookupError, ImportError,
          BufferError, TimeoutError)
cdef dict _kinds = {kind.__name__: kind for kind in _KINDS}


cdef int settle_error(tgx_ctx *c, int code, str what) except -1:
    cause = None
    if PyErr_Occurred():            # of the call that made the extension give up
        if not c.failed:
            return -1
        try:
            _let_out()
        except BaseException as pending:
            cause = pending
    who = <object>c.who
    if not c.failed:
        raise RuntimeError(f"{who}: {what} failed with code {code} and did not say why. It returns tgx->fail(ctx, \"ValueError\", "
                           "...), or what a function of the table returned")
    text, name = (<bytes>c.text).decode("utf-8", "replace"), (<bytes>c.kind).decode("utf-8", "replace")
    kind = _kinds.get(name)
    if kind is None:
        kind, text = RuntimeError, f"{name}: {text}"
    raise kind(f"{who}: {text}") from cause


cdef int _let_out() except -1:
    """The pending error, raised."""
    return -1


# ---- the node ------------------------------------------------------------------------------------------------------

cdef class TableNode(Node):
    """A step whose derivative is code of an extension."""

    cdef int prepare(self, uint32_t places, uint32_t state_size) except -1:
        """Memory for the state, and nothing saved yet."""
        self.places = places
        if places:
            memset(self.output_of, -1, places)
        self.state = self.inline_state
        if state_size > INLINE_STATE:
            self.state = calloc(1, state_size)
            if self.state == NULL:
                raise MemoryError(f"{self.who}: no memory for a state of {state_size} bytes")
        return 0

    def name(self):
        return self.title

    def _edge_names(self):
        if self.names is None or len(self.names) != self.nedges:
            return [str(i) for i in range(self.nedges)]
        return list(self.names)

    @property
    def _saved_tensors(self):
        """What the extension saved, None at places that it left empty."""
        if self.released:
            raise freed_error(self)
        return tuple([unpacked(self, k) for k in range(self.nsaved)])

    cdef int apply(self, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
        cdef tensor_t *few[2 * FEW]
        cdef tensor_t **row = few
        cdef tensor_t **made
        cdef tgx_ctx c
        cdef list zeros
        cdef int i
        if self.released:
            raise freed_error(self)
        if not self.flags & TGX_DIFFERENTIABLE and _any_on_meta(grads, self.noutputs):
            return self._apply_on_meta(results, needed)
        if self.noutputs > FEW or self.nedges > FEW:
            row = <tensor_t **>malloc((self.noutputs + self.nedges) * sizeof(tensor_t *))
            if row == NULL:
                raise MemoryError()
        made = row + self.noutputs
        zeros = None
        tgx_open(&c, <PyObject *>self.who)
        c.needed = needed
        try:
            for i in range(self.noutputs):
                row[i] = <tensor_t *>grads[i]
                if grads[i] == NULL and not self.flags & TGX_SOME_GRADS and self.metas[i].rank >= 0:
                    if zeros is None:
                        zeros = []
                    zeros.append(zeros_for(self, i))
                    row[i] = <tensor_t *><PyObject *>zeros[len(zeros) - 1]
            for i in range(self.nedges):
                made[i] = NULL
            self.begin(&c, row, self.noutputs, made, self.nedges)
            for i in range(self.nedges):
                if made[i] != NULL:
                    if needed[i]:
                        results[i] = <PyObject *>made[i]
                    else:
                        Py_DECREF(<object><PyObject *>made[i])
        finally:
            tgx_close(&c)
            if row != few:
                free(row)
        return 0

    cdef int _apply_on_meta(self, PyObject **results, const unsigned char *needed) except -1:
        """There is no memory to compute on; the gradients look like what they are of."""
        cdef int i
        for i in range(self.nedges):
            if needed[i]:
                made = zeros_for(<Node>self.edges[i].node, self.edges[i].nr)
                Py_INCREF(made)
                results[i] = <PyObject *>made
        return 0

    cdef int begin(self, tgx_ctx *c, tensor_t **grads, int n, tensor_t **inputs, int m) except -1:
        """Run the backward. The caller owns what is in `inputs` afterwards; on an error there is nothing in it."""
        cdef tgx_state *st = state()
        cdef uint32_t flags = st.flags
        cdef unsigned char no_grad = st.no_grad
        cdef int code, i
        cdef bint done = False, raw = not self.flags & TGX_DIFFERENTIABLE
        if not flags & TGX_NO_SUBCLASS and self._holds_subclass(grads, n):
            st.flags |= TGX_NO_SUBCLASS
        if raw:
            st.no_grad = 1
        code = self.backward(c, <node_t *><PyObject *>self, self.state, grads, n, inputs, m)
        st.flags, st.no_grad = flags, no_grad
        try:
            if code:
                settle_error(c, code, "the backward")
            _check_pending()
            self._check(grads, n, inputs, m)
            if raw and not no_grad:
                self._mark_once(grads, n, inputs, m)
            done = True
        finally:
            if not done:
                for i in range(m):
                    if inputs[i] != NULL and isinstance(<object><PyObject *>inputs[i], Tensor):
                        Py_DECREF(<object><PyObject *>inputs[i])
                    inputs[i] = NULL
        return 0

    cdef int _check(self, tensor_t **grads, int n, tensor_t **inputs, int m) except -1:
        """A gradient that came in and goes out as it is need not have been retained."""
        cdef int i, k
        for i in range(m):
            if inputs[i] == NULL:
                continue
            if not isinstance(<object><PyObject *>inputs[i], Tensor):
                raise TypeError(f"{self.who}: gradient {i} that the backward gave is no tensor")
            for k in range(n):
                if inputs[i] == grads[k]:
                    Py_INCREF(<object><PyObject *>inputs[i])
                    break
        return 0

    cdef bint _holds_subclass(self, tensor_t **grads, int n) noexcept:
        cdef int i
        for i in range(n):
            if grads[i] != NULL and not exact(<object><PyObject *>grads[i]):
                return True
        for i in range(self.nsaved):
            if self.saved[i] != NULL and isinstance(<object>self.saved[i], Tensor) and not exact(<object>self.saved[i]):
                return True
        return False

    cdef int _mark_once(self, tensor_t **grads, int n, tensor_t **inputs, int m) except -1:
        """Let what was computed on raw memory, while a second derivative is recorded, say that it has none."""
        cdef list sources = []
        cdef DelayedError node
        cdef Tensor t
        cdef int i
        for i in range(n):
            if grads[i] != NULL and needs_grad(<Tensor><object><PyObject *>grads[i]):
                sources.append(<object><PyObject *>grads[i])
        node = delayed_error(self, f"trying to differentiate twice {self.who}: its backward in C computes on raw memory. Write it with "
                             "tgx->call alone and flag it TGX_DIFFERENTIABLE; what is computed on memory there can be an op of "
                             "its own, with a derivative.", sources, m if m else 1)
        for i in range(m):
            if inputs[i] == NULL or not is_inexact((<Tensor><object><PyObject *>inputs[i]).tid):
                continue
            t = alias(<Tensor><object><PyObject *>inputs[i])
            Py_DECREF(<object><PyObject *>inputs[i])
            inputs[i] = NULL
            give_history(node, i, t, FRESH)
            Py_INCREF(t)
            inputs[i] = <tensor_t *><PyObject *>t
        return 0


cdef void _dealloc(PyObject *o) noexcept:
    """Free a TableNode. (Cython's __dealloc__ would put the current exception aside and back each time.)"""
    PyObject_GC_UnTrack(o)
    tgx_unlink(&(<Node>o).link)
    if (<TableNode>o).whole is None:
        if (<TableNode>o).forget != NULL and (<TableNode>o).state != NULL:
            _forget(o)
        if (<TableNode>o).state != (<TableNode>o).inline_state:
            free((<TableNode>o).state)
    Py_DECREF((<TableNode>o).title)
    Py_DECREF((<TableNode>o).who)
    Py_DECREF((<TableNode>o).names)
    Py_DECREF((<TableNode>o).kept)
    Py_DECREF((<TableNode>o).wanted)
    Py_DECREF((<TableNode>o).whole)
    TGX_DEALLOC(Node)(o)


cdef void _forget(PyObject *o) noexcept:
    """Let the extension, which may run what it likes, free what it keeps in its state."""
    cdef PyObject *kind
    cdef PyObject *error
    cdef PyObject *traceback
    Py_SET_REFCNT(o, 1)             # the node may be asked for something meanwhile
    PyErr_Fetch(&kind, &error, &traceback)
    (<TableNode>o).forget((<TableNode>o).state)
    PyErr_Restore(kind, error, traceback)
    Py_SET_REFCNT(o, 0)


tgx_own_dealloc(TableNode, _dealloc)
start_untracked(TableNode, False)


cdef bint _any_on_meta(PyObject **grads, int n) noexcept:
    cdef int i
    for i in range(n):
        if grads[i] != NULL and (<Tensor>grads[i]).device_id == META and type(<object>grads[i]) is not Carried:
            return True
    return False


cdef int _check_pending() except -1:
    """An error of the table that the extension took no notice of is over."""
    if PyErr_Occurred():
        PyErr_Clear()
    return 0


# ---- what the table does with nodes ----------------------------------------------------------------------------------

cdef TableNode node_of(node_t *n):
    if n == NULL or type(<object><PyObject *>n) is not TableNode:
        raise TypeError("expected a node that tgx->node_new, setup or backward gave")
    return <TableNode><object><PyObject *>n


cdef int _check_place(TableNode n, uint32_t place) except -1:
    if place >= n.places:
        raise IndexError(f"{n.who}: saved tensor {place}: the definition has saved={n.places} places, from 0 on")
    return 0


cdef int save(TableNode n, uint32_t place, object t) except -1:
    cdef int output = -1
    _check_place(n, place)
    if t is not None and not isinstance(t, Tensor):
        raise TypeError(f"{n.who}: saved tensor {place} is no tensor")
    if n.kept is not None:
        n.kept[place] = t
        return 0
    if n.released:
        raise freed_error(n)
    if n.saved[place] != NULL:
        raise RuntimeError(f"{n.who}: something is saved at place {place} already")
    if t is None:
        return 0
    if (<Tensor>t).node is n:
        output = (<Tensor>t).output_nr
    elif (<Tensor>t).base is not None and (<Tensor>(<Tensor>t).base).node is n:
        t = alias(<Tensor>t)
    n.output_of[place] = <int8_t>output
    keep(n, place, t, output)
    return 0


cdef object unpacked(TableNode n, uint32_t place):
    """A saved tensor, or None; an error where it was written to since."""
    _check_place(n, place)
    if n.kept is not None:
        return n.kept[place]
    if n.released:
        raise freed_error(n)
    return unpack(n, place, n.output_of[place], not state().no_grad)


cdef bint needs(TableNode n, tgx_ctx *c, int edge) except -1:
    cdef int count = n.nedges if n.wanted is None else len(n.wanted)
    if not 0 <= edge < count:
        raise IndexError(f"{n.who}: edge {edge}: there are {count}, from 0 on")
    if n.wanted is not None:
        return n.wanted[edge]
    return c.needed[edge] if c.needed != NULL else n.edges[edge].node != NULL
