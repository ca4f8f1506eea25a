# cython: language_level=3
"""The backward pass.

Edges always run from a newer node to an older one, so taking nodes by falling sequence number visits each
node after everything that feeds it: a heap replaces counting dependencies, and nothing recurses. A node
carries a pointer to the gradients waiting for it; when two passes meet at one node (re-entrant or threaded
backward) the second keeps its own table.
"""
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy
from tinygrad_ext.core.loops.copy cimport single_one
from tinygrad_ext.core.call.dispatch cimport state, tgx_state
from tinygrad_ext.core.grad.events cimport apply_node
from tinygrad_ext.core.grad.gradients cimport (
    add_to_leaf, check_nan, explain, is_called, row, run_post_hooks, run_pre_hooks, run_tensor_hooks, sum_gradients, validated,
)
from tinygrad_ext.core.grad.edges cimport AccumulateGrad, gradient_edge
from tinygrad_ext.core.grad.node cimport Edge, Node
from tinygrad_ext.core.grad.reach cimport Mark, Reach
from tinygrad_ext.core.data.tensor cimport Tensor, needs_grad
from tinygrad_ext.core.data.types cimport uint64_t

cdef extern from *:
    """
    #define TGX_TUPLE_ITEMS(row) (((PyTupleObject *)(row))->ob_item)
    /* Item i of a tuple that only its maker writes to. */
    static inline void tgx_put(PyObject *row, Py_ssize_t i, PyObject *item) {
        PyObject *before = TGX_TUPLE_ITEMS(row)[i];
        Py_INCREF(item);
        TGX_TUPLE_ITEMS(row)[i] = item;
        Py_XDECREF(before);
    }
    """
    PyObject **TGX_TUPLE_ITEMS(object row)
    void tgx_put(object row, Py_ssize_t i, object item)
    object PyTuple_New(Py_ssize_t n)

cdef enum:
    FEW = 8                     # edges, nodes on the heap, roots and inputs served without malloc

cdef struct Entry:              # a node of this pass and the gradients that have arrived
    PyObject *node              # owned
    uint64_t seq
    PyObject **grads            # owned; few or malloc'd
    PyObject *few[2]
    Entry *spare


@cython.freelist(4)
cdef class Task:
    """One backward pass."""

    cdef Entry **heap           # few_places or malloc'd
    cdef Py_ssize_t size
    cdef Py_ssize_t room
    cdef Entry *spare
    cdef bint keep_graph
    cdef bint create_graph
    cdef bint accumulate
    cdef dict own               # id(node) -> entry address, for nodes that another pass holds
    cdef Reach needed           # of a pass with inputs: which nodes lead to one, and where it has them; else None
    cdef object captured        # a tuple of the gradients of its inputs, None until one arrives
    cdef object observer        # called with each node, the gradients that arrived, and what it made of them
    cdef PyObject *current      # the node that runs
    cdef dict notes             # of hooks that gather over the pass
    cdef list last              # functions to be called when all of it has run
    cdef int nused              # of few_entries
    cdef Entry *few_places[FEW]
    cdef Entry few_entries[FEW]

    def __cinit__(self):
        self.heap, self.room = self.few_places, FEW

    def __dealloc__(self):
        cdef Py_ssize_t i
        cdef Entry *e
        for i in range(self.size):
            self._drop(self.heap[i])
        if self.heap != self.few_places:
            free(self.heap)
        while self.spare != NULL:
            e = self.spare
            self.spare = e.spare
            if not &self.few_entries[0] <= e < &self.few_entries[FEW]:
                free(e)

    cdef int _drop(self, Entry *e) except -1:
        """Forget an entry with the gradients it still holds."""
        cdef Node n = <Node>e.node
        cdef int i
        if n.task == <void *>self:
            n.task = NULL
            n.entry = NULL
        for i in range(n.noutputs):
            Py_XDECREF(e.grads[i])
        if e.grads != e.few:
            free(e.grads)
        Py_DECREF(n)
        e.spare = self.spare
        self.spare = e
        return 0

    cdef Entry *_entry(self, Node n) except NULL:
        """The entry of a node, put on the heap when it is new."""
        cdef Entry *e
        cdef Py_ssize_t i, parent
        if n.task == <void *>self:
            return <Entry *>n.entry
        if n.task != NULL and self.own is not None:
            found = self.own.get(<size_t><PyObject *>n)
            if found is not None:
                return <Entry *><size_t>found
        e = self.spare
        if e != NULL:
            self.spare = e.spare
        elif self.nused < FEW:
            e = &self.few_entries[self.nused]
            self.nused += 1
        else:
            e = <Entry *>malloc(sizeof(Entry))
            if e == NULL:
                raise MemoryError()
        e.node, e.seq, e.grads = <PyObject *>n, n.seq, e.few
        Py_INCREF(n)
        if n.noutputs > 2:
            e.grads = <PyObject **>calloc(n.noutputs, sizeof(PyObject *))
        e.few[0] = e.few[1] = NULL
        if n.task == NULL:
            n.task, n.entry = <void *>self, <void *>e
        else:
            if self.own is None:
                self.own = {}
            self.own[<size_t><PyObject *>n] = <size_t>e
        if self.size == self.room:
            self._grow()
        i = self.size
        self.size += 1
        while i > 0:
            parent = (i - 1) >> 1
            if self.heap[parent].seq >= e.seq:
                break
            self.heap[i] = self.heap[parent]
            i = parent
        self.heap[i] = e
        return e

    cdef int _grow(self) except -1:
        """Room for twice as many nodes."""
        cdef bint first = self.heap == self.few_places
        cdef Entry **heap = <Entry **>realloc(NULL if first else self.heap, 2 * self.room * sizeof(Entry *))
        if heap == NULL:
            raise MemoryError()
        if first:
            memcpy(heap, self.few_places, sizeof(self.few_places))
        self.heap, self.room = heap, 2 * self.room
        return 0

    cdef Entry *_pop(self) noexcept:
        """Take the newest node off the heap."""
        cdef Entry *top = self.heap[0]
        cdef Entry *last
        cdef Py_ssize_t i = 0, child
        self.size -= 1
        last = self.heap[self.size]
        while True:
            child = 2 * i + 1
            if child >= self.size:
                break
            if child + 1 < self.size and self.heap[child + 1].seq > self.heap[child].seq:
                child += 1
            if last.seq >= self.heap[child].seq:
                break
            self.heap[i] = self.heap[child]
            i = child
        if self.size:
            self.heap[i] = last
        return top

    def reaches(self, nodes):
        """For each node, whether this pass may still come to it, or is there."""
        cdef Py_ssize_t i
        cdef Reach seen = Reach.__new__(Reach)
        cdef list roots = [<object>self.heap[i].node for i in range(self.size)]
        if self.current != NULL:
            roots.append(<object>self.current)
        for n in roots:
            seen.walk(<Node>n)
        return [seen.find(<PyObject *>n) != NULL and (self.needed is None or self.needed.leads(<PyObject *>n)) for n in nodes]

    def gathered(self, key, make):
        """What a hook gathers over this pass: make() when it is asked for first."""
        if self.notes is None:
            self.notes = {}
        if key not in self.notes:
            self.notes[key] = make()
        return self.notes[key]

    def call_at_end(self, fn):
        """Let fn() be called when all nodes have run, after those that were given before."""
        if self.last is None:
            self.last = []
        self.last.append(fn)

    cdef int give(self, Node n, int nr, object grad, Node source, int index) except -1:
        """Add a gradient to output nr of n, which is needed; it is gradient `index` that `source` (or the caller: None) returned."""
        cdef Entry *e
        cdef object checked
        checked = validated(n, nr, grad, source, index)
        e = self._entry(n)
        if e.grads[nr] == NULL:
            Py_INCREF(checked)
            e.grads[nr] = <PyObject *>checked
            return 0
        old = <object>e.grads[nr]
        Py_DECREF(old)             # the buffer's own reference moves into `old`
        e.grads[nr] = NULL
        total = sum_gradients(old, checked, self.create_graph)
        Py_INCREF(total)
        e.grads[nr] = <PyObject *>total
        return 0

    cdef int run(self) except -1:
        cdef tgx_state *st = state()
        cdef PyObject *outer = st.task
        st.task = <PyObject *>self
        try:
            self._run()
            while self.last:
                self.last.pop(0)()
        finally:
            st.task = outer
            self.current = NULL
        return 0

    cdef int _run(self) except -1:
        cdef Entry *e
        cdef int ticks = 0
        while self.size:
            e = self._pop()
            try:
                self._step(<Node>e.node, e)
            finally:
                if self.own is not None:
                    self.own.pop(<size_t>e.node, None)
                self._drop(e)
            ticks += 1
            if ticks & 0xff == 0:
                PyErr_CheckSignals()
        return 0

    cdef int _step(self, Node n, Entry *e) except -1:
        """Hooks, captures, the node itself, and its gradients on their way."""
        cdef PyObject *few_results[FEW]
        cdef unsigned char[FEW] few_needed
        cdef PyObject **results = few_results
        cdef unsigned char *needed = few_needed
        cdef int i
        cdef bint wanted = self.needed is None
        if n.task == <void *>self:
            n.task = n.entry = NULL         # a re-entrant pass may come by
        self.current = <PyObject *>n
        if n.hooks is not None and self.observer is None:
            run_tensor_hooks(n, e.grads)
        if self.needed is not None:
            self._capture(n, e)
        if type(n) is AccumulateGrad:
            if self.accumulate:
                if n.hooks is not None and self.observer is None:
                    run_pre_hooks(n, e.grads)
                add_to_leaf(<AccumulateGrad>n, e.grads, self.create_graph)
                if n.hooks is not None and n.hooks.post is not None and self.observer is None:
                    run_post_hooks(n, e.grads, NULL)
            return 0
        if n.nedges > FEW:
            results = <PyObject **>malloc(n.nedges * sizeof(PyObject *))
            needed = <unsigned char *>malloc(n.nedges)
        try:
            for i in range(n.nedges):
                results[i] = NULL
                needed[i] = n.edges[i].node != NULL and (self.needed is None or self.needed.leads(n.edges[i].node))
                wanted |= needed[i]
            # (backward(inputs=) runs what its inputs come from so far, grad() does not)
            if n.hooks is not None and self.observer is None and (wanted or self.accumulate):
                run_pre_hooks(n, e.grads)
            if not wanted:
                if self.accumulate and n.hooks is not None and n.hooks.post is not None and self.observer is None:
                    run_post_hooks(n, e.grads, results)
                return 0
            if self.observer is not None or n.hooks is not None:
                self._apply_watched(n, e, results, needed)
            elif is_called(n, e.grads):
                apply_node(n, e.grads, results, needed)
            if self.observer is None and n.hooks is not None and n.hooks.post is not None:
                run_post_hooks(n, e.grads, results)
            if state().anomaly == 2:
                check_nan(n, results)
            if not self.keep_graph and not n.released:
                n.release()
            for i in range(n.nedges):
                if results[i] != NULL:
                    grad = <object>results[i]
                    Py_DECREF(grad)
                    results[i] = NULL
                    if needed[i]:
                        self.give(<Node>n.edges[i].node, n.edges[i].nr, grad, n, i)
                    grad = None
                elif needed[i]:
                    self._entry(<Node>n.edges[i].node)      # an undefined gradient: nodes and hooks learn of it
        finally:
            for i in range(n.nedges):
                Py_XDECREF(results[i])
            if results != few_results:
                free(results)
                free(needed)
        return 0

    cdef int _apply_watched(self, Node n, Entry *e, PyObject **results, unsigned char *needed) except -1:
        """Run a node on which something hangs, or in a pass that is observed."""
        arrived = None if self.observer is None else row(e.grads, n.noutputs)
        try:
            if is_called(n, e.grads):
                apply_node(n, e.grads, results, needed)
        except BaseException as error:
            if self.observer is not None:
                self.observer(n, arrived, error)
            explain(n)
            raise
        if self.observer is not None:
            self.observer(n, arrived, row(results, n.nedges))
        return 0

    cdef int _capture(self, Node n, Entry *e) except -1:
        """Keep gradients that grad() asked for."""
        cdef Mark *m = self.needed.find(<PyObject *>n)
        cdef int i = m.first if m != NULL and self.captured is not None else -1
        while i >= 0:
            if e.grads[self.needed.spots[i].nr] != NULL:
                tgx_put(self.captured, i, <object>e.grads[self.needed.spots[i].nr])
            i = self.needed.spots[i].next
        return 0


include "engine_entry.pxi"
