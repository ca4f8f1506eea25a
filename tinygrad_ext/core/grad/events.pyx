# cython: language_level=3
"""Events of a profile: what an observer writes down of each operation, in a ring of plain C structs.

One slice is one struct, written when it ends; names, lines, shapes and owners are numbers into tables. No Python object
is made for an event. A recorder belongs to the thread that entered it, so its ring needs no lock. Slices nest or are
disjoint whatever the program does: an operation that ends takes the ranges with it that were left open inside, and a
range that ends out of order takes those above it.

Rejected: begin and end as two events, where a full ring keeps ends without beginnings; and a list of tuples, which the
garbage collector walks. A full ring forgets the oldest slices and counts them.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc
from tinygrad_ext.core.call.levels cimport Observer, OpForm, Operation, perform
from tinygrad_ext.core.call.levels import active_levels, calling_line, user_line
from tinygrad_ext.core.data.storage import memory_stats
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport int64_t, uint32_t, uint64_t
from tinygrad_ext.core.grad.node cimport Node

cdef extern from *:
    """
    #include <time.h>
    static int64_t tgx_event_clock(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    }
    """
    int64_t tgx_event_clock() noexcept nogil

cdef enum:
    OPERATION
    RANGE
    BACKWARD

KINDS = ("operation", "range", "backward")

cdef struct Event:
    int64_t begin               # ns
    int64_t end
    int64_t used_before         # bytes in use
    int64_t used_after
    uint64_t seq                # of the history node: made by an operation, run by a backward slice; 0: none
    uint32_t name
    uint32_t line
    uint32_t shapes
    uint32_t owner
    uint32_t depth
    uint32_t kind


cdef class Recorder(Observer):
    """Writes slices into a ring of `capacity`: operations, ranges, and nodes of backward passes of this thread."""

    cdef Event *ring
    cdef readonly Py_ssize_t capacity
    cdef Py_ssize_t written
    cdef uint32_t depth
    cdef Py_ssize_t floor           # open ranges that began before the operation that runs
    cdef list opened                # of those ranges: (number of name, kind, begin, bytes, sequence number, line)
    cdef dict numbers               # text or tuple -> its number
    cdef list texts
    cdef Operation skipped          # a composite that was recorded and is to be opened
    cdef bint lines, shapes, memory

    def __cinit__(self, Py_ssize_t capacity=1 << 18, *, bint lines=False, bint shapes=False, bint memory=False):
        if capacity < 1:
            raise ValueError(f"capacity: expected at least one event, but got {capacity}")
        self.capacity, self.lines, self.shapes, self.memory = capacity, lines, shapes, memory
        self.opened, self.numbers, self.texts = [], {"": 0}, [""]
        self.ring = <Event *>malloc(capacity * sizeof(Event))   # untouched pages take no memory
        if self.ring == NULL:
            raise MemoryError(f"no memory for {capacity} events")

    def __dealloc__(self):
        free(self.ring)

    cdef uint32_t _number(self, object text) except? 0xffffffff:
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return found

    cdef int64_t _used(self) except -1:
        return memory_stats()["allocated"] if self.memory else 0

    cdef Event *_slot(self) noexcept:
        cdef Event *e = &self.ring[self.written % self.capacity]
        self.written += 1
        return e

    def process(self, Operation operation, tuple args):
        cdef int64_t begin, used
        cdef Py_ssize_t floor = self.floor
        cdef uint32_t name, line, shapes = 0, owner = 0
        cdef uint64_t seq = 0
        if operation is self.skipped:
            self.skipped = None
            return NotImplemented
        name = self._number(operation.name)
        line = self._number(user_line()) if self.lines else 0
        if self.shapes:
            shapes = self._number(tuple([_shape(a) for a in args]))
        if self.lines and isinstance(operation, OpForm):
            owner = self._number(str((<OpForm>operation).op.record.owner))
        used = self._used()
        self.depth += 1
        self.floor = len(self.opened)
        begin = tgx_event_clock()
        try:
            if operation.composite:
                self.skipped = operation
                result = self.resume(operation, *args)
            elif isinstance(operation, OpForm):
                result = operation.run(args)
            else:
                result = perform(operation, args)
            if type(result) is Tensor and isinstance((<Tensor>result).node, Node):
                seq = (<Node>(<Tensor>result).node).seq
            return result
        finally:
            self.skipped = None
            self._close(self.floor)
            self.floor = floor
            self.depth -= 1
            self._write(name, OPERATION, begin, used, seq, line, shapes, owner)

    cdef int _write(self, uint32_t name, int kind, int64_t begin, int64_t used, uint64_t seq, uint32_t line,
                    uint32_t shapes, uint32_t owner) except -1:
        cdef int64_t after = self._used()
        cdef Event *e = self._slot()
        e.end = tgx_event_clock()
        e.begin, e.used_before, e.used_after, e.seq = begin, used, after, seq
        e.name, e.line, e.shapes, e.owner, e.depth, e.kind = name, line, shapes, owner, self.depth, kind
        return 0

    cdef int _open(self, str name, int kind, uint64_t seq) except -1:
        line = self._number(calling_line()) if self.lines and kind == RANGE else 0
        self.opened.append((self._number(name), kind, self._used(), seq, line, tgx_event_clock()))
        self.depth += 1
        return 0

    cdef int _close(self, Py_ssize_t count) except -1:
        """End the innermost ranges until so many are open."""
        while len(self.opened) > count:
            name, kind, used, seq, line, begin = self.opened.pop()
            self.depth -= 1
            self._write(name, kind, begin, used, seq, line, 0, 0)
        return 0

    def begin(self, name):
        self._open(name, RANGE, 0)

    def end(self, name):
        cdef Py_ssize_t i
        number = self._number(name)
        for i in range(len(self.opened) - 1, self.floor - 1, -1):
            if self.opened[i][0] == number and self.opened[i][1] == RANGE:
                self._close(i)
                return

    cdef int _end_node(self) except -1:
        """End the innermost backward node, unless the profile ended inside it."""
        cdef Py_ssize_t i
        for i in range(len(self.opened) - 1, self.floor - 1, -1):
            if self.opened[i][1] == BACKWARD:
                return self._close(i)
        return 0

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.floor = 0
        self._close(0)

    @property
    def dropped(self):
        """Slices that the ring had no room for: the oldest ones."""
        return max(0, self.written - self.capacity)

    def slices(self):
        """What the ring holds, by begin: dicts of name, kind, begin and end in ns, depth, seq, line, shapes, owner, bytes."""
        cdef Py_ssize_t i, first = max(0, self.written - self.capacity)
        cdef Event *e
        found = []
        for i in range(first, self.written):
            e = &self.ring[i % self.capacity]
            found.append({
                "name": self.texts[e.name], "kind": KINDS[e.kind], "begin": e.begin, "end": e.end, "depth": e.depth,
                "seq": e.seq, "line": self.texts[e.line], "shapes": self.texts[e.shapes] or (),
                "owner": self.texts[e.owner], "used_before": e.used_before, "used_after": e.used_after,
            })
        found.sort(key=lambda s: (s["begin"], s["depth"]))
        return found


cdef object _shape(object a):
    if isinstance(a, Tensor):
        return tuple(a.shape)
    return tuple([_shape(o) for o in a]) if isinstance(a, (list, tuple)) and a and isinstance(a[0], Tensor) else ()


# ---- told by the engine, where the thread has levels -----------------------------------------------------------------

cdef int apply_seen(Node n, PyObject **grads, PyObject **results, const unsigned char *needed) except -1:
    """n.apply as a slice of the thread's recorders."""
    cdef list recorders = [level for level in active_levels() if type(level) is Recorder]
    name = n.name() if recorders else None
    for recorder in recorders:
        (<Recorder>recorder)._open(name, BACKWARD, n.seq)
    try:
        return n.apply(grads, results, needed)
    finally:
        for recorder in recorders:
            (<Recorder>recorder)._end_node()
