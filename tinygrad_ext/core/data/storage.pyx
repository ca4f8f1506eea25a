# cython: language_level=3
"""Reference-counted memory blocks with a small caching allocator.

Blocks are 64-byte aligned. Sizes are rounded up to a class (64-byte steps to 1 KiB, then eight classes for
each power of two), and a freed block waits in its class for the next request, so that a training loop
touches the same pages in each step. Everything here runs under the GIL, which is the lock of the tables.
The cache keeps at most three quarters of the peak use, and with what is in use a quarter more than the peak
(64 MiB at least). Beyond that, the sizes not freed for the longest time go back to the system: the block freed
last is the one most likely asked for next, and fresh pages cost several times as much as an addition over them. Rejected:
letting go of the block that is freed when the cache is full, which gave a process that had once used other sizes fresh
pages at every large call.

In sanitizer builds a block is as long as the request and goes back at once: a byte behind a tensor, and a block
read after it was released, would else be memory of our own, which no sanitizer can tell from the right one.
"""
cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.object cimport PyObject
from libc.string cimport memcpy
from tinygrad_ext.core.data.memory_error import AllocationError

ctypedef void (*destructor)(PyObject *o) noexcept

cdef extern from "let_go.h":
    void tgx_let_go(PyObject *o) noexcept

cdef extern from "own_dealloc.h":
    destructor tgx_own_dealloc(object type, destructor dealloc)
    ctypedef struct Fields "TGX_STORAGE":       # of an instance that goes
        char *data
        size_t block
        PyObject *owner

cdef enum:
    N_CLASSES = 512

cdef struct Block:
    Block *next
    size_t size
    size_t freed                # the allocations made when it was freed

cdef Block *_cache[N_CLASSES]
cdef size_t SMALLEST_CACHE = 64 << 20

cdef extern from *:
    """
    static inline int tgx_log2(size_t n) { return 63 - __builtin_clzll((unsigned long long)n); }
    #ifndef TGX_EXACT
    #define TGX_EXACT 0
    #endif
    """
    int tgx_log2(size_t n) nogil
    bint EXACT "TGX_EXACT"

cdef extern from "fresh_memory.h":
    void *tgx_fresh_memory(size_t size) noexcept
    void tgx_give_back(void *memory, size_t size) noexcept


cdef inline int _class_of(size_t nbytes, size_t *rounded) noexcept:
    """Class number of a request, and the size of that class's blocks."""
    cdef int p
    cdef size_t step
    if EXACT:
        rounded[0] = nbytes if nbytes else 1
        return 0
    if nbytes <= 1024:
        rounded[0] = (nbytes + 63) & ~<size_t>63
        if rounded[0] == 0:
            rounded[0] = 64
        return <int>(rounded[0] >> 6)
    p = tgx_log2(nbytes - 1)
    step = (<size_t>1) << (p - 3)
    rounded[0] = (nbytes + step - 1) & ~(step - 1)
    return <int>(17 + (p - 10) * 8 + ((rounded[0] - ((<size_t>1) << p)) >> (p - 3)))


ALLOCATION = "DefaultCPUAllocator: can't allocate memory, {} bytes for a tensor; free other tensors or use a smaller size"


cdef char *_allocate(size_t nbytes, size_t *block) except NULL:
    cdef Block *found
    cdef void *fresh = NULL
    cdef int c
    if nbytes > (<size_t>1 << 46):
        raise AllocationError(ALLOCATION.format(nbytes))
    c = _class_of(nbytes, block)
    found = _cache[c]
    if found != NULL:
        _cache[c] = found.next
        books.cached -= block[0]
        fresh = found
    else:
        fresh = tgx_fresh_memory(block[0])
        if fresh == NULL:
            empty_cache()
            fresh = tgx_fresh_memory(block[0])
        if fresh == NULL:
            block[0] = 0        # nothing to release when the Storage goes
            raise AllocationError(ALLOCATION.format(nbytes))
    books.allocations += 1
    books.in_use += block[0]
    if books.in_use > books.peak:
        books.peak = books.in_use
    return <char *>fresh


cdef void _make_room(size_t wanted) noexcept:
    """Free cached blocks, the longest unused classes first, until at most `wanted` bytes are cached."""
    cdef int c, oldest
    cdef Block *b
    while books.cached > wanted:
        oldest = -1
        for c in range(N_CLASSES):
            if _cache[c] != NULL and (oldest < 0 or _cache[c].freed < _cache[oldest].freed):
                oldest = c
        while _cache[oldest] != NULL and books.cached > wanted:
            b = _cache[oldest]
            _cache[oldest] = b.next
            books.cached -= b.size
            tgx_give_back(b, b.size)


cdef void _release(char *data, size_t block) noexcept:
    cdef size_t rounded, limit
    cdef int c
    books.in_use -= block
    if EXACT:
        tgx_give_back(data, block)
        return
    if books.cached + block > SMALLEST_CACHE:
        limit = min(books.peak + books.peak // 4 - books.in_use, books.peak - books.peak // 4)
        if limit < SMALLEST_CACHE:
            limit = SMALLEST_CACHE
        if block > limit:
            tgx_give_back(data, block)
            return
        if books.cached + block > limit:
            _make_room(limit - block)
    c = _class_of(block, &rounded)
    (<Block *>data).next = _cache[c]
    (<Block *>data).size = block
    (<Block *>data).freed = books.allocations
    _cache[c] = <Block *>data
    books.cached += block


cdef void let_go(PyObject *o) noexcept:
    tgx_let_go(o)


@cython.final
@cython.no_gc
@cython.freelist(128)
cdef class Storage:
    """A block of memory, or memory lent by `owner`."""

    def __reduce__(self):
        self._need_host("pickled")
        return storage_of_bytes, (self.data[:self.nbytes],)

    def __deepcopy__(self, memo):
        self._need_host("copied")
        cdef Storage out = new_storage(self.nbytes)
        if self.nbytes:
            memcpy(out.data, self.data, self.nbytes)
        memo[id(self)] = out
        return out

    def __getbuffer__(self, Py_buffer *view, int flags):
        self._need_host("lent")
        PyBuffer_FillInfo(view, self, self.data, self.nbytes, self.readonly, flags)

    def resize(self, size_t nbytes):
        """Let it be of so many bytes where its block is; whether it could. Tensors over it point into the block, which stays."""
        if self.owner is not None or self.device_id:
            raise RuntimeError("Trying to resize storage that is not resizable: its memory was lent by another library")
        if nbytes > self.block:
            return False
        self.nbytes = nbytes
        return True

    def _need_host(self, done):
        if self.device_id:
            raise NotImplementedError(f"memory of a plugin's device cannot be {done} as it is: move the tensor first, with "
                                      "cpu(), or clone() it")


cdef destructor _plain_dealloc = NULL


cdef void _dealloc(PyObject *o) noexcept:
    """Free a Storage. (Cython's __dealloc__ would put the current exception aside and back each time.)"""
    cdef PyObject *owner
    if (<Fields *>o).block:
        _release((<Fields *>o).data, (<Fields *>o).block)
        _plain_dealloc(o)
    else:
        owner = (<Fields *>o).owner
        (<Fields *>o).owner = NULL
        _plain_dealloc(o)
        let_go(owner)


_plain_dealloc = tgx_own_dealloc(Storage, _dealloc)


cdef Storage new_storage(size_t nbytes):
    cdef Storage s = Storage.__new__(Storage)
    s.data = _allocate(nbytes, &s.block)
    s.nbytes = nbytes
    return s


cdef Storage borrow_storage(char *data, size_t nbytes, object owner, bint readonly):
    cdef Storage s = Storage.__new__(Storage)
    s.data = data
    s.nbytes = nbytes
    s.owner = owner
    s.readonly = readonly
    return s


def storage_of_bytes(const unsigned char[::1] data not None):
    """A storage with a copy of some bytes."""
    cdef Storage s = new_storage(data.shape[0])
    if data.shape[0]:
        memcpy(s.data, &data[0], data.shape[0])
    return s


def empty_storage(size_t nbytes):
    """A storage whose bytes are not set."""
    return new_storage(nbytes)


def storage_facts(Storage s not None):
    """Address and bytes of a storage."""
    return <size_t>s.data, s.nbytes


def is_own(Storage s not None):
    """Whether the memory was not lent."""
    return s.owner is None and not s.device_id


def empty_cache():
    """Give the cached, unused blocks back to the system."""
    drop_whole()
    _make_room(0)


cdef size_t bytes_in_use() noexcept nogil:
    return books.in_use


def memory_stats():
    """Bytes in use, peak bytes, cached bytes, and allocations made, as a dict."""
    return {"allocated": books.in_use, "peak": books.peak, "cached": books.cached + books.whole, "allocations": books.allocations}


def reset_peak_memory_stats():
    """Start a new peak measurement at the present use."""
    books.peak = books.in_use
