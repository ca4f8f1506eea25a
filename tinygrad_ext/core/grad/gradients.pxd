"""What the engine does with a gradient between two nodes."""
from cpython.object cimport PyObject
from tinygrad_ext.core.grad.edges cimport AccumulateGrad
from tinygrad_ext.core.grad.node cimport Node

cdef object validated(Node n, int nr, object grad, Node source, int index)
cdef object sum_gradients(object a, object b, bint create_graph)
cdef int add_to_leaf(AccumulateGrad n, PyObject **grads, bint create_graph) except -1
cdef tuple row(PyObject **grads, int n)
cdef bint is_called(Node n, PyObject **grads) noexcept          # whether a node is run on what arrived
cdef int run_tensor_hooks(Node n, PyObject **grads) except -1
cdef int run_pre_hooks(Node n, PyObject **grads) except -1
cdef int run_post_hooks(Node n, PyObject **grads, PyObject **results) except -1
cdef int explain(Node n) except -1
cdef int check_nan(Node n, PyObject **results) except -1
