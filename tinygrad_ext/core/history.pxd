"""How tensors hang on the graph: edges, accumulators, in-place history."""
from tinygrad_ext.core.node cimport Edge, Node
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport int64_t

cdef class AccumulateGrad(Node):
    cdef readonly Tensor variable

cdef class CopySlices(Node):
    cdef Node fn
    cdef Tensor base_like        # geometry of base, without data
    cdef Tensor view_like
    cdef int64_t offset
    cdef int at                  # the edge of fn that belongs to the view

cdef Node accumulator(Tensor leaf)
cdef int gradient_edge(Tensor t, Edge *into) except -1
cdef int edge(Node n, int i, Tensor t) except -1
cdef object grad_fn_of(Tensor t)
cdef int rebase(Tensor t, Node n, int nr, int at) except -1
cdef int set_node(Tensor t, Node n, int nr) except -1
cdef int check_inplace(Tensor t, bint recording) except -1
cdef int check_inference(Tensor t) except -1
cdef bint shows_history(Tensor t) noexcept
