# cython: language_level=3
"""Memory that several processes share: a file without a name, mapped.

A storage that becomes shared keeps its identity and takes over a mapping; its tensors are moved onto it. They own the
storage and not the other way round, so the caller looks for them (`tensor/sharing.py`). What the storage had before stays
as long as the mapping: an array of NumPy or a kernel in another thread may still be reading there. Rejected: mapping over the
old block in place, which needs whole pages; and names below /dev/shm, which stay behind when a process is killed.
"""
from cpython.object cimport PyObject
from libc.errno cimport errno
from libc.string cimport memcpy, strerror
from tinygrad_ext.core.data.storage cimport Storage, borrow_storage
from tinygrad_ext.core.data.tensor cimport Tensor, alias, set_geometry

cdef extern from "sys/mman.h" nogil:
    enum:
        PROT_READ, PROT_WRITE, MAP_SHARED
    void *MAP_FAILED
    void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset)
    int munmap(void *address, size_t length)

cdef extern from "unistd.h" nogil:
    int close(int fd)


cdef class SharedBlock:
    """A file in memory, mapped. Owns its descriptor; -1 where that is closed already."""
    cdef char *data
    cdef readonly size_t nbytes
    cdef readonly int fd
    cdef Storage before             # what the storage over it had until it was shared
    cdef object __weakref__

    def __cinit__(self, int fd, size_t nbytes):
        cdef void *data = NULL
        self.fd = -1
        if nbytes:
            data = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
            if data == MAP_FAILED:
                raise RuntimeError(f"unable to mmap {nbytes} bytes of shared memory: {strerror(errno).decode()} ({errno})")
        self.data, self.nbytes, self.fd = <char *>data, nbytes, fd

    def __dealloc__(self):
        if self.data != NULL:
            munmap(self.data, self.nbytes)
        if self.fd >= 0:
            close(self.fd)

    def forget_file(self):
        """Close the descriptor; the memory stays mapped."""
        if self.fd >= 0:
            close(self.fd)
            self.fd = -1

    def storage(self, size_t offset, size_t nbytes):
        """A storage over a part of the block."""
        if offset > self.nbytes or nbytes > self.nbytes - offset:
            raise ValueError(f"{nbytes} bytes at {offset} do not lie in a shared block of {self.nbytes}")
        return borrow_storage(self.data + offset, nbytes, self, False)

    def write(self, size_t offset, const unsigned char[::1] data not None):
        """Copy bytes into the block."""
        if offset > self.nbytes or <size_t>data.shape[0] > self.nbytes - offset:
            raise ValueError(f"{data.shape[0]} bytes at {offset} do not lie in a shared block of {self.nbytes}")
        if data.shape[0]:
            memcpy(self.data + offset, &data[0], data.shape[0])


def block_of(Storage s not None):
    """The shared block that a storage lies in, or None."""
    return s.owner if isinstance(s.owner, SharedBlock) else None


def tensors_over(Storage s not None, list objects not None):
    """The tensors among any objects that lie in s. Asked are their types alone: an object may lie about its class."""
    return [o for o in objects if isinstance(o, Tensor) and (<Tensor>o).storage is s]


def is_alone(Tensor t not None):
    """Whether nothing but t holds its storage."""
    return t.storage is not None and (<PyObject *>t.storage).ob_refcnt == 1


def move(Storage s not None, SharedBlock block not None, list tensors not None):
    """Let s be the first bytes of a block, with all the tensors that lie in it."""
    cdef Tensor t, moved
    cdef Storage before = Storage.__new__(Storage)
    if s.device_id:
        raise RuntimeError("share_memory_: only memory of the cpu can be shared; this is of a plugin's device")
    if block.nbytes < s.nbytes:
        raise ValueError(f"a shared block of {block.nbytes} bytes cannot take {s.nbytes}")
    before.data, before.nbytes, before.block, before.owner = s.data, s.nbytes, s.block, s.owner
    if s.nbytes:
        memcpy(block.data, s.data, s.nbytes)
    block.before = before
    s.data, s.block, s.owner = block.data, 0, block
    for t in tensors:
        moved = alias(t)
        if t.data != NULL:
            moved.data = s.data + (t.data - before.data)
        set_geometry(t, moved)
