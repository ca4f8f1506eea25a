"""Nodes whose backward is a function in C."""
from cpython.object cimport PyObject
from tinygrad_ext.core.data.types cimport int8_t, uint32_t
from tinygrad_ext.core.grad.node cimport Node
from tinygrad_ext.extension.public cimport node_t, tensor_t, tgx_backward, tgx_ctx, tgx_release

cdef enum:
    MAX_PLACES = 32             # for saved tensors
    INLINE_STATE = 64           # bytes

cdef class TableNode(Node):
    cdef tgx_backward backward
    cdef tgx_release forget
    cdef uint32_t flags
    cdef uint32_t places
    cdef bint given                         # it has outputs
    cdef void *state
    cdef str title                          # as grad_fn shows it
    cdef str who                            # the op, for messages
    cdef tuple names                        # of the arguments that edges lead from, or None
    cdef list kept                          # of a node outside of the graph: what it saved; else None
    cdef tuple wanted                       # ... and which gradients are asked for
    cdef TableNode whole                    # ... and whose state it uses
    cdef int8_t[MAX_PLACES] output_of       # which output a saved tensor is, or -1
    cdef char[INLINE_STATE] inline_state

    cdef int prepare(self, uint32_t places, uint32_t state_size) except -1
    cdef int _check(self, tensor_t **grads, int n, tensor_t **inputs, int m) except -1
    cdef bint _holds_subclass(self, tensor_t **grads, int n) noexcept
    cdef int _mark_once(self, tensor_t **grads, int n, tensor_t **inputs, int m) except -1
    cdef int _apply_on_meta(self, PyObject **results, const unsigned char *needed) except -1
    cdef int begin(self, tgx_ctx *c, tensor_t **grads, int n, tensor_t **inputs, int m) except -1

cdef TableNode node_of(node_t *n)                       # TypeError for what is none
cdef int save(TableNode n, uint32_t place, object t) except -1
cdef object unpacked(TableNode n, uint32_t place)
cdef bint needs(TableNode n, tgx_ctx *c, int edge) except -1
cdef int settle_error(tgx_ctx *c, int code, str what) except -1     # raises what is pending, or what the extension said
