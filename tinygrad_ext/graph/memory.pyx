# cython: language_level=3
"""Where buffers lie in an arena: greedy by size (arXiv 2001.03288).

The largest buffer comes first; each lies at the lowest place where no other is that lives at the same time. Within a few
per cent of the best on real networks, and never worse than one place for each.
"""
from libc.stdlib cimport free, malloc
from tinygrad_ext.core.data.types cimport int64_t

cdef struct Life:
    int64_t offset
    int64_t nbytes
    int first
    int last


def place(list buffers):
    """Set `offset` of buffers (with nbytes, first and last); returns the bytes of the arena."""
    cdef Py_ssize_t i, k, n = len(buffers), placed = 0
    cdef Life *lives = <Life *>malloc((n + 1) * sizeof(Life))
    cdef Life now
    cdef int64_t total = 0
    if lives == NULL:
        raise MemoryError()
    try:
        for buffer in sorted(buffers, key=_size, reverse=True):
            now.nbytes = (max(<int64_t>buffer.nbytes, 1) + 63) & ~<int64_t>63
            now.first, now.last, now.offset = buffer.first, buffer.last, 0
            for i in range(placed):                     # by offset: the first gap that is large enough
                if lives[i].last < now.first or lives[i].first > now.last:
                    continue
                if lives[i].offset >= now.offset + now.nbytes:
                    break
                now.offset = max(now.offset, lives[i].offset + lives[i].nbytes)
            k = placed
            while k > 0 and lives[k - 1].offset > now.offset:
                lives[k] = lives[k - 1]
                k -= 1
            lives[k] = now
            placed += 1
            buffer.offset = now.offset
            total = max(total, now.offset + now.nbytes)
    finally:
        free(lives)
    return total


def _size(buffer):
    return buffer.nbytes
