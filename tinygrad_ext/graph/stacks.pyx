# cython: language_level=3
"""Stacks that plans have filled (kernels/stacks.h), as Python holds them: what crosses from the plan of a loop to that of the
loop that goes back over it.

A `Stack` never changes, so it may be popped as often as one likes: backward passes that keep the graph find what the first
one found. Its rows go with the last stack of their pile. The memory comes from the cache of tensors' memory, so a step of a
training loop touches the pages of the step before.

A step between plans pops one like the stacks that steps make: what stands in the row becomes tensors of their own.
"""
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from tinygrad_ext.core.data.dtype cimport CPU
from tinygrad_ext.core.data.storage cimport Storage, new_storage
from tinygrad_ext.core.data.tensor cimport Tensor, empty_strided
from tinygrad_ext.core.data.types cimport TGX_NO_MEMORY, int64_t
from tinygrad_ext.graph.plan_h cimport *

cdef enum:
    CHUNK = 1 << 16         # bytes, if that holds a row
    SHIFTED = 12            # rows of a chunk at most, as a power of two


cdef class Form:
    """What a row of a pile consists of.

    Attributes:
        nbytes: of a row.
        parts: for each value that is pushed (what, more...): ("tensor", dtype, sizes, strides, offset, bytes),
            ("number", kind, offset), ("stack", number among the inner piles or None, offset), ("value", what it always is),
            ("list" or "tuple", parts).
    """

    def __init__(self, tuple parts, Py_ssize_t nbytes, list inner):
        """inner: forms of the inner piles."""
        self.parts, self.nbytes = parts, nbytes
        self.key = (_key(parts), tuple([form.key for form in inner]))


def _key(tuple parts):
    """Parts without what compares as equal and is not."""
    made = []
    for part in parts:
        if part[0] == "value":
            part = ("value", type(part[1]), repr(part[1]))
        elif part[0] in ("list", "tuple"):
            part = (part[0], _key(part[1]))
        made.append(part)
    return tuple(made)


cdef class Pile:
    """Rows of one form."""

    def __init__(self, Form form not None, list inner not None):
        cdef size_t nbytes = form.nbytes
        self.form, self.inner, self.memory = form, inner, []
        self.c.row_bytes, self.c.owner = nbytes, <void *>self
        while self.c.shift < SHIFTED and nbytes << (self.c.shift + 1) <= CHUNK:
            self.c.shift += 1

    def __dealloc__(self):
        free(self.c.chunks)

    cdef int more(self) except -1:
        cdef Py_ssize_t n = len(self.memory)
        cdef char **chunks
        cdef Storage made
        made = new_storage(self.c.row_bytes << self.c.shift)    # which refuses what no memory holds
        if n & (n - 1) == 0:            # the list of chunks doubles
            chunks = <char **>realloc(self.c.chunks, (2 * n + 1) * sizeof(char *))
            if chunks == NULL:
                raise MemoryError()
            self.c.chunks = chunks
        self.memory.append(made)
        self.c.chunks[n] = made.data
        self.c.room += <int64_t>1 << self.c.shift
        return 0


cdef int grow(tgx_pile *pile) noexcept nogil:
    """Room for more rows of a Pile's pile: 0, or TGX_NO_MEMORY."""
    with gil:
        try:
            (<Pile>pile.owner).more()
        except MemoryError:
            return TGX_NO_MEMORY
    return 0


cdef class Stack:
    """A stack of what the turns of a loop have made."""

    def pop(self):
        """(the stack without the last turn, what that made); () if it is empty."""
        cdef Pile pile = self.pile
        cdef const char *row
        cdef int64_t before = 0
        if pile is None or not 0 <= self.top < pile.c.count:
            return ()
        row = tgx_row_of(&pile.c, self.top)
        memcpy(&before, row, sizeof(before))
        return (stack_of(pile, before), *_read(pile, pile.form.parts, row))

    def __repr__(self):
        return "<empty stack>" if self.top < 0 else "<stack of what the turns of a loop have made>"


cdef Stack stack_of(Pile pile, long long top):
    cdef Stack made = Stack.__new__(Stack)
    made.pile, made.top = pile, top
    return made


cdef list _read(Pile pile, tuple parts, const char *row):
    cdef list made = []
    cdef int64_t number
    for part in parts:
        what = part[0]
        if what == "tensor":
            made.append(_tensor(part, row))
        elif what == "number":
            made.append(_number_at(part[1], row + <Py_ssize_t>part[2]))
        elif what == "stack":
            memcpy(&number, row + <Py_ssize_t>part[2], sizeof(number))
            made.append(stack_of(None if part[1] is None else pile.inner[part[1]], number))
        elif what == "value":
            made.append(part[1])
        else:
            found = _read(pile, part[1], row)
            made.append(found if what == "list" else tuple(found))
    return made


cdef Tensor _tensor(tuple part, const char *row):
    cdef int64_t sizes[64]
    cdef int64_t strides[64]
    cdef Tensor made
    cdef int i, rank = len(part[2])
    for i in range(rank):
        sizes[i], strides[i] = part[2][i], part[3][i]
    made = empty_strided(sizes, strides, rank, part[1], CPU)
    memcpy(made.data, row + <Py_ssize_t>part[4], <size_t>part[5])
    return made


cdef object _number_at(int kind, const char *at):
    cdef tgx_number n
    memcpy(&n, at, 16 if kind == TGX_KIND_COMPLEX else 8)
    return number_of(&n, kind)


cdef object number_of(const tgx_number *n, int kind):
    """A register as Python has it."""
    if kind == TGX_KIND_INT:
        return n.i
    if kind == TGX_KIND_FLOAT:
        return n.f
    return n.i != 0 if kind == TGX_KIND_BOOL else complex(n.f, n.im)
