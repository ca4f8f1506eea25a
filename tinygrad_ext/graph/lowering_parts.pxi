# What a lowered graph consists of. Part of lowering.pyx.

cdef class Room:
    def __cinit__(self):
        self.chunks = []

    def __dealloc__(self):
        for chunk in self.chunks:
            free(<void *><size_t>chunk)

    cdef void *take(self, size_t nbytes) except NULL:
        cdef char *found
        cdef size_t size
        nbytes = (nbytes + 15) & ~<size_t>15
        if nbytes > self.left:
            size = max(nbytes, <size_t>CHUNK)
            found = <char *>calloc(1, size)
            if found == NULL:
                raise MemoryError()
            self.chunks.append(<size_t>found)
            if nbytes > CHUNK // 2:
                return found
            self.at, self.left = found, size
        found = self.at
        self.at += nbytes
        self.left -= nbytes
        return found


cdef class Buffer:
    def __init__(self, int64_t nbytes=0, int base=-1):
        self.nbytes, self.base = nbytes, base
        self.first = self.last = -1


cdef class Number:
    def __init__(self, int slot, value):
        self.slot, self.value = slot, value


cdef class Constant:
    pass


cdef class Step:
    def __init__(self, str code, int node, str op):
        self.code, self.node, self.op = code, node, op
        self.reads, self.writes = [], []


cdef Buffer buffer_of(Tensor t):
    return <Buffer>t.storage.owner


cdef inline Tensor _on_meta(Tensor t):
    cdef Tensor m = alias(t)
    m.storage, m.data, m.device_id = None, NULL, META
    return m
