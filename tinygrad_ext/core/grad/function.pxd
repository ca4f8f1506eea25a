from cpython.object cimport PyObject
from tinygrad_ext.core.grad.node cimport Node
from tinygrad_ext.core.call.places cimport tgx_place
from tinygrad_ext.core.grad.plan cimport Plan
from tinygrad_ext.core.data.tensor cimport Tensor

cdef enum:
    FEW_INPUTS = 8

cdef enum InputFlag:
    IS_TENSOR = 1
    NEEDS_GRAD = 2

cdef class FunctionNode(Node):
    cdef Plan plan
    cdef tuple to_save                      # what save_for_backward was given, until the forward is over
    cdef public object saved_for_forward
    cdef tuple dirty
    cdef tuple non_differentiable
    cdef object needs_input_grad_           # the tuple, made when asked for
    cdef public bint materialize_grads
    cdef bint accessed
    cdef bint over                          # the forward is over
    cdef unsigned char *inputs              # InputFlag of each argument of forward
    cdef int ninputs
    cdef int nwanted                        # backward returns at least so many gradients; defaults may be left out
    cdef tuple extra_names                  # names of the arguments that **kwargs took
    cdef list output_of                     # for each saved tensor: the output it is, or one of Origin
    cdef list tensor_names                  # attributes that hold tensors
    cdef dict kept                          # attributes that cannot be plain: name -> (tensor, Origin or output, weakref)
    cdef tgx_place save_place               # where save_for_backward was called
    cdef unsigned char[FEW_INPUTS] few_inputs

    cdef bint take_inputs(self, PyObject **args, int n, int nothing, bint record) except -1
    cdef int _make_room(self, int n) except -1
    cdef int seal(self, bint record) except -1
    cdef int keep_saved(self) except -1
    cdef int keep_attributes(self) except -1
    cdef int _origin(self, Tensor t) noexcept
    cdef Tensor _apart(self, Tensor t, int origin)
    cdef int _keep(self, name, Tensor t, int origin) except -1
