# cython: language_level=3
"""One tgx_op_def as an extension gave it, copied and judged.

It may be older than this table, or lie: only what its `size` covers is read, and what makes no sense is refused here.
"""
from libc.string cimport memcpy, memset
from tinygrad_ext.core.data.types cimport uint32_t
from tinygrad_ext.extension.nodes cimport MAX_PLACES
from tinygrad_ext.extension.public cimport *


cdef class Definition:
    """One tgx_op_def, as the extension gave it."""


cdef Definition definition_of(const tgx_op_def *given):
    """A copy of what an extension wrote."""
    cdef Definition d = Definition.__new__(Definition)
    cdef uint32_t size
    if given == NULL:
        raise TypeError("register_op: the definition is NULL")
    size = given.size
    if size < 64 or size > 1 << 12:
        raise TypeError(f"register_op: the definition says that it has {size} bytes; set .size to sizeof(tgx_op_def), or write it with "
                        "TGX_OP(...)")
    memset(&d.row, 0, sizeof(tgx_op_def))
    memcpy(&d.row, given, min(size, sizeof(tgx_op_def)))
    if d.row.schema == NULL:
        raise TypeError("register_op: the definition has no schema; write .schema = \"mylib::name(Tensor x) -> Tensor\"")
    d.schema = (<bytes>d.row.schema).decode()
    d.doc = None if d.row.doc == NULL else (<bytes>d.row.doc).decode()
    d.source = None if d.row.source == NULL else (<bytes>d.row.source).decode()
    d.line = d.row.line
    if d.row.kernel == NULL:
        raise TypeError(f"{d.schema}: the definition has no kernel")
    if d.row.flags & TGX_FILLS and d.row.shape == NULL:
        raise TypeError(f"{d.schema}: TGX_FILLS wants a shape, which says what to make for the kernel to fill")
    if d.row.flags & TGX_UNLOCKED and not d.row.flags & TGX_FILLS:
        raise TypeError(f"{d.schema}: TGX_UNLOCKED goes with TGX_FILLS: a kernel that makes its results needs the lock")
    if d.row.flags & TGX_DENSE and "!)" in d.schema:
        raise TypeError(f"{d.schema}: TGX_DENSE is not for ops that write to an argument: they would write to a copy")
    if d.row.saved > MAX_PLACES:
        raise ValueError(f"{d.schema}: saved={d.row.saved}: there are at most {MAX_PLACES} places")
    if d.row.setup != NULL and d.row.backward == NULL:
        raise TypeError(f"{d.schema}: there is a setup but no backward")
    return d


def returns_of(Definition d not None):
    """What it brings: (composite, has a backward, makes its own history, shape or fake, jvp, batch)."""
    return (bool(d.row.flags & TGX_COMPOSITE), d.row.backward != NULL, bool(d.row.flags & TGX_OWN_HISTORY),
            d.row.shape != NULL or d.row.fake != NULL, d.row.jvp != NULL, d.row.batch != NULL)
