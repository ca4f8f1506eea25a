"""Op, the callables over it, and the thread's state."""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.kernel cimport tgx_kernel
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport (
    TGX_NTYPES, int32_t, int64_t, tgx_loop, tgx_scalar, uint8_t, uint32_t, uint64_t,
)

cdef extern from "state.h" nogil:
    enum:
        TGX_MODES
        TGX_LEVELS
        TGX_NO_SUBCLASS
        TGX_NO_MODES
        TGX_SKIP_ONE
        TGX_NO_DISPATCH
    ctypedef struct tgx_state:
        uint32_t flags
        uint32_t below
        uint8_t no_grad
        uint8_t inference
        uint8_t anomaly
        uint8_t in_forward
        int32_t active
        PyObject *modes
        PyObject *levels
        PyObject *task
        PyObject *saved_hooks
        PyObject *saved_refusal
        PyObject *slices
        PyObject *instead

cdef enum:
    MAX_ARGS = 24
    MAX_RULES = 12
    MAX_SAVED = 24

cdef struct ArgSpec:
    int kind                # A_...
    int single              # the same where it is no list, else -1
    int flags               # F_...
    int size                # of int[n]: n; a lone int stands for n equal ones
    PyObject *name
    PyObject *default

cdef enum Kind:
    POINTWISE, KERNEL, PYTHON_KERNEL, COMPOSITE

cdef enum Form:             # how an op is called; the last two write to the first argument, or to `out`
    FUNCTIONAL, INPLACE, OUT

cdef struct Rule:
    int ntargets
    int[MAX_ARGS] targets   # which of Op.tensors
    uint64_t saves          # mask over Op.saved
    int nparams
    int[MAX_SAVED] params   # P_... in the high byte, number of the argument or output in the low one
    int[MAX_SAVED] places   # where in Op.saved the parameter is, or -1
    bint identity
    int factor              # place of a number that multiplies the gradient, which passes on where it is 1; -1: there is none
    PyObject *fn
    PyObject *called        # the Op that fn is a call of, whose arguments the parameters are; NULL: it must be bound

ctypedef object (*kernel_fn)(PyObject **args)

cdef class Op

cdef class Elsewhere:               # an op's Python function from elsewhere; custom_call.pyx has the one subclass
    cdef object call(self, Op op, PyObject **args)                      # the op as a whole
    cdef object run(self, Op op, PyObject **args)                       # its kernel alone

cdef class Op:
    cdef readonly str name          # aten::add.Tensor
    cdef readonly str title         # add: what messages say
    cdef readonly object record
    cdef readonly object schema
    cdef Kind kind
    cdef int nargs
    cdef int npositional
    cdef int ntensors
    cdef int nleading               # how many tensors alone are a whole call of it, the others having defaults; else -1
    cdef int nreturns
    cdef int[MAX_ARGS] tensors      # numbers of the arguments that hold tensors or lists of them
    cdef ArgSpec[MAX_ARGS] args
    cdef int nattributes
    cdef int[MAX_ARGS] attributes   # numbers of the other arguments
    cdef kernel_fn kernel
    cdef const tgx_kernel *pair     # a kernel in C, or NULL
    cdef const char *c_title        # title, for kernels in C
    cdef bint makes_list            # the result is a list of tensors
    cdef object python              # a Python kernel or a composite's function
    cdef tuple keywords             # names of the last arguments, which the Python function takes by keyword, or None
    cdef Elsewhere custom           # how an op whose Python function is not ours is called, else None
    cdef bint writes                # some argument is mutated
    cdef bint loose                 # registered no more
    cdef readonly object shape_rule # (*args) -> sizes and dtype, for meta tensors
    cdef public object batch_rule   # how vmap carries it out, and forward mode its tangents: what func makes of the record
    cdef public object tangent_rule # when they are first asked for, else None
    # pointwise
    cdef tgx_loop[TGX_NTYPES] loops
    cdef int nscalars
    cdef int[MAX_ARGS] scalars      # argument numbers in the order of the loop's aux
    cdef bint to_float              # integers are computed as the default float dtype
    cdef bint bool_to_int           # bool is computed as int64
    cdef bint cut_scalars           # scalar arguments lose their fraction where the computing dtype has none
    cdef bint scalars_promote       # scalar arguments take part in promotion
    cdef int fixed_out              # dtype of the output; -1: the computing dtype; -2: the real one of its precision
    cdef dict refuses               # texts of the errors for kinds of operands, or None
    cdef object failure             # text of the error for TGX_BAD_VALUE
    cdef dict choices               # words of str arguments by name
    cdef int fixed_inputs           # mask of the inputs that are bool whatever the others are
    cdef bint out_kernel            # the kernel takes the target of the in-place form, or None, as an extra last argument
    cdef bint knows_meta            # the kernel itself serves meta tensors
    cdef bint any_device            # ... and those on any device, by copies of core/loops/copy
    cdef int options                # number of a factory's first option (dtype, layout, device, pin_memory, requires_grad), or -1
    cdef bint is_factory            # an argument may say where to make the result
    cdef int traits                 # of every call: see dispatch.pyx
    cdef readonly dict rows                  # device type -> function that computes the op there; None: any type of a plugin
    # autograd
    cdef bint differentiable
    cdef bint holomorphic           # rules are derivatives of an analytic function: conjugated for complex gradients
    cdef bint is_view
    cdef bint has_out
    cdef bint apart                 # what is written to must share no memory with an input: outputs.pyx
    cdef int first_apart            # ... from this one on; of an in-place form the input itself is none
    cdef int only_apart             # ... this argument alone, else -1
    cdef int may_be_target           # the argument that may be the target as a whole, else -1
    cdef bint exact                 # out= is of the dtype of the result
    cdef bint bytes                 # ... or of uint8
    cdef int adopts                 # the argument that the dtype of out= is taken for where it is None, or -1
    cdef bint exact_inplace         # ... and the tensor of an in-place form
    cdef bint fills                 # a target of as many elements as the row that is made keeps its shape
    cdef bint one_tensor            # of the first two arguments, which also take numbers, one is a tensor
    cdef int nrules
    cdef Rule *rules                # NULL while there are none
    cdef object rules_from          # (op) -> calls set_rules: at the first call that is recorded; None: that was done
    cdef int nsaved
    cdef int[MAX_SAVED] saved
    cdef uint64_t output_mask       # outputs that carry gradients
    cdef str shown_as               # name shown as grad_fn; None: nobody asked yet
    cdef object returns             # named tuple class of several results, what `named` makes it of, or None
    cdef object returns_out         # the class with out=
    cdef list forms                 # the op in each Form as a level gets it, or None: nobody asked yet

cdef tgx_state *state() noexcept nogil
cdef int settle_rules(Op op) except -1                                   # read the derivative rules where that was put off
cdef object named(Op op)                                                 # the class of several results
cdef object call_op(Op op, PyObject **args)                              # levels, autograd and kernel
cdef object call_below(Op op, PyObject **args)                           # the same without levels
cdef enum:
    UNKNOWN = -1
cdef object call_plain(Op op, PyObject **args, int needed)               # ... by who knows whether autograd records it, or UNKNOWN
cdef object forward(Op op, PyObject **args)                              # kernel only
cdef int register_kernel(str name, kernel_fn fn) except -1
cdef int register_pair(str name, const tgx_kernel *pair) except -1
ctypedef object (*call_kernel_fn)(Op op, PyObject **args)
ctypedef int (*kernel_into_fn)(Op op, PyObject **args, PyObject **targets, bint inplace) except -1
cdef int set_kernel_caller(call_kernel_fn call, kernel_into_fn into) except -1
cdef int kernel_into(Op op, PyObject **args, PyObject **targets, bint inplace) except -1     # of an op with a kernel in C
cdef int pointwise_into(Op op, PyObject **args, PyObject *target) except -1
cdef bint any_needs_grad(Op op, PyObject **args) noexcept
cdef bint any_away(Op op, PyObject **args) noexcept                      # some tensor is not on the cpu
cdef int mark_derived(Op op, PyObject **args, object result) except -1

# The slot of autograd, which record.pyx fills: runs an op on operands of which some need a gradient, and writes down its
# history. The dispatcher decides that it is wanted; how it is made is known above it only.
ctypedef object (*record_fn)(Op op, PyObject **args, PyObject *out, bint inplace)
cdef record_fn record_op
ctypedef int (*targets_fn)(PyObject **targets, int count, bint recording, int noutputs, str who) except -1
cdef targets_fn check_written         # check_targets of the histories
ctypedef object (*pointwise_fn)(Op op, PyObject **args, PyObject *out)
cdef object run_python(Op op, PyObject **args)                           # a Python kernel or composite alone
ctypedef object (*levels_fn)(Op op, PyObject **args, int form)
cdef int set_levels(levels_fn fn) except -1
cdef object through_levels(Op op, PyObject **args, int form)             # NotImplemented: go on, nobody took it
ctypedef object (*instead_fn)(Op op, PyObject **args, bint inplace)
cdef int set_instead(instead_fn fn) except -1
cdef object run_instead(Op op, PyObject **args, bint inplace)            # what waits in state().instead
ctypedef object (*device_fn)(Op op, PyObject **args, PyObject *out)
cdef int set_on_device(device_fn fn) except -1
cdef object on_device(Op op, PyObject **args, PyObject *out)             # by a plugin's device; NotImplemented: on none
cdef int set_pointwise(pointwise_fn fn) except -1
