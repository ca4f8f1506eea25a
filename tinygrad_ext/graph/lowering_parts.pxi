# What a lowered graph consists of. Part of lowering.pyx.

cdef class Room:
    def __dealloc__(self):
        cdef void **before
        while self.chunks != NULL:      # not a list of Python's: the collector clears those before this is called
            before = <void **>self.chunks[0]
            free(self.chunks)
            self.chunks = before

    cdef void *take(self, size_t nbytes) except NULL:
        cdef char *found
        nbytes = (nbytes + 15) & ~<size_t>15
        if nbytes > self.left:
            if nbytes > CHUNK // 2:
                return self._chunk(nbytes)
            self.at, self.left = self._chunk(CHUNK), CHUNK
        found = self.at
        self.at += nbytes
        self.left -= nbytes
        return found

    cdef char *_chunk(self, size_t nbytes) except NULL:
        cdef void **made = <void **>calloc(1, nbytes + 16)
        if made == NULL:
            raise MemoryError()
        made[0] = self.chunks
        self.chunks = made
        return <char *>made + 16


cdef class Buffer:
    def __init__(self, int64_t nbytes=0, int base=-1):
        self.nbytes, self.base = nbytes, base
        self.first = self.last = -1


cdef class Number:
    def __init__(self, int slot, value):
        self.slot, self.value, self.after = slot, value, []


cdef class Heap:
    def __init__(self, int number, Form form, list inner, bint given):
        self.number, self.form, self.inner, self.given = number, form, inner, given


cdef class Stacked:
    def __init__(self, number, Heap heap):
        self.number, self.heap = number, heap


cdef class Way:
    def __init__(self, Tensor own, Number number, list sources):
        self.own, self.number, self.sources = own, number, sources


cdef class Constant:
    pass


cdef class Step:
    def __init__(self, str code, int node, str op):
        self.code, self.node, self.op = code, node, op
        self.reads, self.writes = [], []


cdef Buffer buffer_of(Tensor t):
    return <Buffer>t.storage.owner


def base_of(Tensor t not None):
    """The number of the input that a stand-in lies in, or less than zero."""
    return buffer_of(t).base


cdef inline Tensor _on_meta(Tensor t):
    cdef Tensor m = alias(t)
    m.storage, m.data, m.device_id = None, NULL, META
    return m
