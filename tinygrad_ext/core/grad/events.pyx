# cython: language_level=3
"""Events of a profile: what an observer writes down of each operation, in a ring of plain C structs.

One slice is one struct, written when it ends; names, lines, shapes and owners are numbers into tables. No Python object
is made for an event. A recorder belongs to the thread that entered it, so its ring needs no lock; its name is known to no
operation: the thread's word for levels says that it is there, and where it is the only level, operations come to `watch`
with the arguments as they lie, past all that levels with rules of their own need. Slices nest or are disjoint whatever the
program does: an operation that ends takes the ranges with it that were left open inside, and a range that ends out of order
takes those above it.

Rejected: begin and end as two events, where a full ring keeps ends without beginnings; and a list of tuples, which the
garbage collector walks. A full ring forgets the oldest slices and counts them.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset
from tinygrad_ext.core.call.dispatch cimport COMPOSITE, FUNCTIONAL, INPLACE, Op, call_below, tgx_state
from tinygrad_ext.core.call.inplace cimport call_out, inplace_below
from tinygrad_ext.core.call.levels cimport OpForm, Operation, form_of, holds_carried, offer_row, perform
from tinygrad_ext.core.call.levels import active_levels
from tinygrad_ext.core.call.places cimport place_text, stack_of_places, tgx_place
from tinygrad_ext.core.data.storage cimport bytes_in_use
from tinygrad_ext.core.data.tensor cimport Carried, Tensor

cdef enum:
    MOST_LINES = 32         # of a stack

KINDS = tuple("operation range backward graph plan node tile".split())

cdef int watching = 0


cdef class Recorder(Observer):
    """Writes slices into a ring of `capacity`: operations, ranges, nodes of backward passes, plans of this thread."""

    def __cinit__(self, Py_ssize_t capacity=1 << 18, *, bint lines=False, bint shapes=False, bint memory=False):
        if capacity < 1:
            raise ValueError(f"capacity: expected at least one event, but got {capacity}")
        self.lines, self.shapes, self.memory = lines, shapes, memory
        self.numbers, self.texts = {"": 0}, [""]
        self.names, self.stacks, self.codes, self.plans = {}, {}, [], {}
        self.watches = True
        self.ring.capacity = capacity
        self.ring.events = <tgx_event *>malloc(capacity * sizeof(tgx_event))     # untouched pages take no memory
        self.room = 16
        self.opened = <Open *>malloc(self.room * sizeof(Open))
        if self.ring.events == NULL or self.opened == NULL:
            raise MemoryError(f"no memory for {capacity} events")

    def __dealloc__(self):
        free(self.ring.events)
        free(self.opened)

    def __enter__(self):
        global watching
        super().__enter__()
        self.stack = <list>state().levels
        watching += 1
        self.on = True
        return self

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.floor = 0
        self._close(0)
        self.off()

    def off(self, bint gone=False):
        """Write nothing more. The recorder of another thread leaves its stack when that thread comes by, or here if it is gone."""
        global watching
        if self.on:
            watching -= 1
            self.on = False
        if gone and self.at >= 0:
            self.stack.remove(self)
            self.at = -1
        self.stopped = self.at >= 0

    # ---- what a slice says -------------------------------------------------------------------------------------------

    cdef uint32_t number(self, object text) except? 0xffffffff:
        cdef PyObject *found = PyDict_GetItem(self.numbers, text)
        if found != NULL:
            return <uint32_t><object>found
        self.numbers[text] = len(self.texts)
        self.texts.append(text)
        return <uint32_t>(len(self.texts) - 1)

    cdef int64_t _used(self) noexcept:
        return bytes_in_use() if self.memory else 0

    cdef uint32_t _lines(self) except? 0xffffffff:
        """The user's frames, the innermost first."""
        cdef tgx_place places[MOST_LINES]
        cdef PyObject *found
        cdef int i, n
        memset(places, 0, sizeof(places))
        n = stack_of_places(places, MOST_LINES)
        key = PyBytes_FromStringAndSize(<char *>places, n * sizeof(tgx_place))
        found = PyDict_GetItem(self.stacks, key)
        if found != NULL:
            return <uint32_t><object>found
        self.codes.append([<object>places[i].code for i in range(n)])
        made = self.stacks[key] = self.number(tuple([place_text(places[i]) for i in range(n)]))
        return made

    cdef int _describe(self, Open *at, object key, str name, object args) except -1:
        """key: what stands for the name, an Op or an Operation; args: a tuple, or None where they are not asked for."""
        cdef PyObject *found = PyDict_GetItem(self.names, key)
        memset(at, 0, sizeof(Open))
        if found == NULL:
            self.names[key] = self.number(name if name is not None else (<Op>key).name)
            found = PyDict_GetItem(self.names, key)
        at.name, at.kind = <uint32_t><object>found, OPERATION
        if self.shapes:
            at.shapes = self.number((tuple([_shape(a) for a in args]), tuple([_plain(a) for a in args])))
        if self.lines:
            at.line = self._lines()
            op = key if isinstance(key, Op) else (<OpForm>key).op if isinstance(key, OpForm) else None
            at.owner = self.number(str(op.record.owner)) if op is not None else 0
        at.used = self._used()
        return 0

    # ---- operations ----------------------------------------------------------------------------------------------------

    cdef object watch(self, Op op, PyObject **args, int form):
        """An op of which this is the only level. As `process`, without a tuple of its arguments."""
        cdef tgx_state *st = state()
        cdef Open at
        cdef Py_ssize_t i, n, was = st.active, floor = self.floor
        cdef bint whole = op.kind == COMPOSITE and form == FUNCTIONAL
        if self.stopped or holds_carried(args, op.nargs):
            return offer_row(op, args, form)
        if self.skipped is not None and form_of(op, form) is self.skipped:
            self.skipped = None
            return NotImplemented
        self._describe(&at, op if form == FUNCTIONAL else form_of(op, form), None if form == FUNCTIONAL else
                       form_of(op, form).name, tuple([<object>args[i] for i in range(op.nargs)]) if self.shapes else None)
        self.depth += 1
        self.floor = self.nopened
        n = len(<list>st.levels)
        at.begin = tgx_event_clock()
        try:
            if whole:
                result = call_below(op, args)           # with the levels on: what it is written in is seen
            else:
                st.active = 0
                st.flags &= ~<uint32_t>TGX_LEVELS
                result = (call_below(op, args) if form == FUNCTIONAL else inplace_below(op, args) if form == INPLACE
                          else call_out(op, args, <object>args[op.nargs]))
            if type(result) is Tensor and isinstance((<Tensor>result).node, Node):
                at.seq = (<Node>(<Tensor>result).node).seq
            return result
        finally:
            if not whole:
                st.active = <int32_t>(was + len(<list>st.levels) - n)
                if st.active:
                    st.flags |= TGX_LEVELS
            self._ended(&at, floor)

    def process(self, Operation operation, tuple args):
        cdef Open at
        cdef Py_ssize_t floor = self.floor
        if self.stopped:
            super().__exit__()
            return NotImplemented
        if operation is self.skipped:
            self.skipped = None
            return NotImplemented
        self._describe(&at, operation, operation.name, args)
        self.depth += 1
        self.floor = self.nopened
        at.begin = tgx_event_clock()
        try:
            if operation.composite:
                self.skipped = operation
                result = self.resume(operation, *args)
            elif isinstance(operation, OpForm):
                result = operation.run(args)
            else:
                result = perform(operation, args)
            if type(result) is Tensor and isinstance((<Tensor>result).node, Node):
                at.seq = (<Node>(<Tensor>result).node).seq
            return result
        finally:
            self.skipped = None
            self._ended(&at, floor)

    cdef int _ended(self, Open *at, Py_ssize_t floor) except -1:
        self._close(self.floor)
        self.floor = floor
        self.depth -= 1
        return self._write(at)

    cdef int _write(self, Open *at) noexcept:
        cdef tgx_event *e = tgx_next_event(&self.ring)
        e.begin, e.used_before, e.used_after, e.seq = at.begin, at.used, self._used(), at.seq
        e.name, e.line, e.shapes, e.owner, e.depth, e.kind = at.name, at.line, at.shapes, at.owner, self.depth, at.kind
        e.end = tgx_event_clock()
        return 0

    # ---- what begins and ends apart ------------------------------------------------------------------------------------

    cdef int open(self, str name, int kind, uint64_t seq) except -1:
        cdef Open *at
        if self.nopened == self.room:
            at = <Open *>realloc(self.opened, 2 * self.room * sizeof(Open))
            if at == NULL:
                raise MemoryError("no memory for one more open range")
            self.opened, self.room = at, 2 * self.room
        at = &self.opened[self.nopened]
        memset(at, 0, sizeof(Open))
        at.name, at.kind, at.seq = self.number(name), kind, seq
        if self.lines and kind != BACKWARD:
            at.line = self._lines()
        at.used = self._used()
        self.nopened += 1
        self.depth += 1
        at.begin = tgx_event_clock()
        return 0

    cdef int _close(self, Py_ssize_t count) except -1:
        """End the innermost ones until so many are open."""
        while self.nopened > count:
            self.nopened -= 1
            self.depth -= 1
            self._write(&self.opened[self.nopened])
        return 0

    def begin(self, name):
        self.open(name, RANGE, 0)

    def end(self, name):
        cdef Py_ssize_t i
        number = self.number(name)
        for i in range(self.nopened - 1, self.floor - 1, -1):
            if self.opened[i].name == number and self.opened[i].kind == RANGE:
                self._close(i)
                return

    cdef int end_kind(self, int kind, uint64_t seq) except -1:
        """End the innermost of a kind, unless the profile ended inside it. seq: of the node that it made, or 0."""
        cdef Py_ssize_t i
        for i in range(self.nopened - 1, self.floor - 1, -1):
            if self.opened[i].kind == kind:
                self.opened[i].seq = seq if seq else self.opened[i].seq
                return self._close(i)
        return 0

    # ---- looking -------------------------------------------------------------------------------------------------------

    @property
    def capacity(self):
        return self.ring.capacity

    @property
    def dropped(self):
        """Slices that the ring had no room for: the oldest ones."""
        return max(0, self.ring.written - self.ring.capacity)

    def slices(self):
        """What the ring holds, by begin: dicts of name, kind, begin and end in ns, depth, seq, line (a tuple, the innermost
        first), shapes, owner, bytes; of instructions of plans also nodes, nbytes, made and derives, see graph/routine.pyx."""
        cdef int64_t i, written = self.ring.written, first = max(0, written - self.ring.capacity)
        cdef tgx_event *e
        found = []
        for i in range(first, written):
            e = &self.ring.events[i % self.ring.capacity]
            name = self.texts[e.name]
            found.append({
                "name": name if type(name) is str else name[0], "kind": KINDS[e.kind], "begin": e.begin, "end": e.end,
                "depth": e.depth, "seq": e.seq, "line": self.texts[e.line] or (), "shapes": self.texts[e.shapes] or (),
                "owner": self.texts[e.owner], "used_before": e.used_before, "used_after": e.used_after,
                "plan": None if type(name) is str else name[1],
            })
        found.sort(key=lambda s: (s["begin"], s["depth"]))
        return found


cdef object _shape(object a):
    cdef Py_ssize_t i
    cdef Tensor t
    if type(a) is Carried:
        return tuple(a.shape)           # what it shows
    if isinstance(a, Tensor):
        t = <Tensor>a
        return tuple([t.sizes[i] for i in range(t.rank)])
    return tuple([_shape(o) for o in a]) if isinstance(a, (list, tuple)) and a and isinstance(a[0], Tensor) else ()


cdef object _plain(object a):
    """An argument that is a number, a text, or a row of numbers; else None."""
    if isinstance(a, (list, tuple)):
        return tuple(a) if all([type(x) in _PLAIN for x in a]) else None
    return a if type(a) in _PLAIN else None


_PLAIN = frozenset((int, float, bool, str))


cdef void count_watching(int change) noexcept:
    global watching
    watching += change


cdef list recorders_here():
    """The recorders of this thread that see what happens next."""
    cdef Recorder r
    if not state().flags & TGX_LEVELS:
        return []
    found = [level for level in active_levels() if type(level) is Recorder]
    return [r for r in found if not r.stopped]


# ---- told by the engine, where the thread has levels -----------------------------------------------------------------

cdef int apply_seen(Node n, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
    """n.apply as a slice of the thread's recorders."""
    cdef list recorders = recorders_here()
    name = n.name() if recorders else None
    for recorder in recorders:
        (<Recorder>recorder).open(name, BACKWARD, n.seq)
    try:
        return n.apply(grads, results, needed)
    finally:
        for recorder in recorders:
            (<Recorder>recorder).end_kind(BACKWARD, 0)
