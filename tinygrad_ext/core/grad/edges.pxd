"""Where a tensor's gradient goes."""
from cpython.object cimport PyObject
from tinygrad_ext.core.grad.node cimport Edge, Node
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport int64_t

cdef class AccumulateGrad(Node):
    cdef readonly Tensor variable

cdef class CopySlices(Node):
    cdef Node fn
    cdef Tensor base_like        # geometry of base, without data
    cdef Tensor view_like
    cdef int64_t offset
    cdef int at                  # the edge of fn that belongs to the view, and the output
    cdef int nr

cdef inline PyObject *living_accumulator(Tensor leaf) noexcept:
    """The leaf's AccumulateGrad where some graph has it, borrowed; NULL: there is none, or it sleeps."""
    cdef PyObject *a = <PyObject *>leaf.accumulator
    return a if a != NULL and a.ob_refcnt else NULL

cdef int gradient_edge(Tensor t, Edge *into) except -1
cdef int hang_output(Tensor t, Node n, int output) except -1
cdef int edge(Node n, int i, Tensor t) except -1
cdef int share_edges(Node n, Node source, int but) except -1
cdef object grad_fn_of(Tensor t)
cdef int set_node(Tensor t, Node n, int nr) except -1
cdef int check_origin(Tensor t, str problem) except -1
