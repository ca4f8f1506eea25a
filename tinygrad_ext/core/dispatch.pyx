# cython: language_level=3
"""Op and the way from bound arguments to a kernel.

A call arrives from callables.pyx with its arguments bound to the schema, after overrides were asked. `call_op`
offers it to the levels, where there are any, and decides whether autograd records it; `forward` runs the kernel: a
pointwise loop, a compiled kernel, a Python kernel, or a composite written in other ops.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from tinygrad_ext.core.dtype cimport CPU, META, dtype_of
from tinygrad_ext.core.kernel cimport tgx_kernel
from tinygrad_ext.core.tensor cimport (
    DERIVED, DETACHED_VIEW, DIFF_VIEW, INFERENCE, REQUIRES_GRAD, Tensor, needs_grad, set_base, version_of,
)
from tinygrad_ext.core.tracking cimport track_all
from tinygrad_ext.core.types cimport A_ANY, A_DEVICE, A_TENSOR, F_KEYWORD, F_LIST, F_NESTED, F_WRITE

cdef extern from *:
    """
    /* In the static block of the thread it is read by one instruction; a module that is loaded later would ask a function
     * each time, which costs a small op 3 % of its instructions. glibc keeps room there for modules loaded later. */
    #ifdef __GLIBC__
    __attribute__((tls_model("initial-exec")))
    #endif
    static __thread tgx_state tgx_thread_state;
    """
    tgx_state tgx_thread_state

cdef extern from "Python.h":
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)
    const char *PyUnicode_AsUTF8(object o) except NULL

cdef pointwise_fn _pointwise = NULL
cdef device_fn _on_device = NULL
cdef held_fn _run_held = NULL
cdef levels_fn _levels = NULL
cdef call_kernel_fn _call_kernel = NULL
cdef kernel_into_fn _kernel_into = NULL
cdef dict _kernels = {}
cdef dict _pairs = {}


cdef tgx_state *state() noexcept nogil:
    return &tgx_thread_state


cdef int set_pointwise(pointwise_fn fn) except -1:
    """The function that runs every pointwise op."""
    global _pointwise
    _pointwise = fn
    return 0


cdef int set_held(held_fn fn) except -1:
    """The function that runs a kernel on aliases of its tensors, see core/held.pyx."""
    global _run_held
    _run_held = fn
    return 0


cdef int set_on_device(device_fn fn) except -1:
    """The function that computes on the devices of plugins."""
    global _on_device
    _on_device = fn
    return 0


cdef object on_device(Op op, PyObject **args, PyObject *out):
    return _on_device(op, args, out)


cdef int set_levels(levels_fn fn) except -1:
    """The function that offers an operation to the levels of the thread."""
    global _levels
    _levels = fn
    return 0


cdef object through_levels(Op op, PyObject **args, int form):
    return _levels(op, args, form)


cdef int register_kernel(str name, kernel_fn fn) except -1:
    """Offer a compiled kernel to the records, which name it."""
    if name in _kernels:
        raise RuntimeError(f"kernel '{name}' is registered twice")
    _kernels[name] = PyCapsule_New(<void *>fn, NULL, NULL)
    return 0


cdef int register_pair(str name, const tgx_kernel *pair) except -1:
    """Offer a kernel in C to the records, which name it."""
    if name in _pairs or name in _kernels:
        raise RuntimeError(f"kernel '{name}' is registered twice")
    _pairs[name] = PyCapsule_New(<void *>pair, NULL, NULL)
    return 0


cdef int set_kernel_caller(call_kernel_fn call, kernel_into_fn into) except -1:
    """The functions that call a kernel in C, see core/kernel_call.pyx."""
    global _call_kernel, _kernel_into
    _call_kernel, _kernel_into = call, into
    return 0


cdef int kernel_into(Op op, PyObject **args, Tensor out, bint inplace) except -1:
    return _kernel_into(op, args, out, inplace)


def kernel_names():
    """Names of the kernels loaded so far: those in C, and those that speak Python."""
    return sorted(_pairs), sorted(_kernels)


cdef class Elsewhere:
    cdef object call(self, Op op, PyObject **args):
        raise NotImplementedError(op.name)

    cdef object run(self, Op op, PyObject **args):
        raise NotImplementedError(op.name)


cdef class Op:
    """One overload of an op: schema, kernel, derivative rules. Made by registry from a record."""

    def __init__(self, name, title, record, schema, args, nreturns):
        cdef int i
        if len(args) > MAX_ARGS:
            raise ValueError(f"{name}: {len(args)} arguments, at most {MAX_ARGS} are possible")
        self.name, self.title, self.record, self.schema, self.nreturns = name, title, record, schema, nreturns
        self.kind = COMPOSITE
        self.fixed_out = -1
        for i, (arg, kind, flags, size, default) in enumerate(args):
            self.args[i].name = <PyObject *>arg
            self.args[i].default = <PyObject *>default
            Py_INCREF(arg)
            Py_INCREF(default)
            self.args[i].kind, self.args[i].flags, self.args[i].size = kind, flags, size
            self.args[i].single = -1 if flags & F_LIST else kind
            if kind == A_ANY and i:
                self.args[i].flags |= F_NESTED
            if not flags & F_KEYWORD:
                self.npositional = i + 1
            if flags & F_WRITE:
                self.writes = True
            if kind == A_TENSOR:
                self.tensors[self.ntensors] = i
                self.ntensors += 1
            else:
                self.attributes[self.nattributes] = i
                self.nattributes += 1
        self.nargs = len(args)
        self.c_title = PyUnicode_AsUTF8(self.title)

    def __dealloc__(self):
        cdef int i
        for i in range(self.nargs):
            Py_XDECREF(self.args[i].name)
            Py_XDECREF(self.args[i].default)
        for i in range(self.nrules):
            Py_XDECREF(self.rules[i].fn)

    def __repr__(self):
        owner = self.record.owner
        return f"<op {self.name}>" if owner.distribution == "tinygrad_ext" else f"<op {self.name} ({owner})>"

    @property
    def kernel_kind(self):
        """'pointwise', 'kernel' (in C), 'boxed' (compiled, over Python objects), 'python' or 'composite'."""
        if self.kind == KERNEL and self.pair == NULL:
            return "boxed"
        return ("pointwise", "kernel", "python", "composite")[<int>self.kind]

    @property
    def loop_dtypes(self):
        """Names of the dtypes that a pointwise op has a loop for."""
        return [dtype_of(i).name for i in range(<int>TGX_NTYPES) if self.loops[<int>i] != NULL]

    @property
    def is_view_op(self):
        """Whether results share memory with the first argument."""
        return self.is_view

    def set_pointwise(self, loops, scalars, promote, int fixed_out, int fixed_inputs):
        """Pointwise op: capsule of its loops by dtype, and the numbers of its scalar arguments."""
        cdef tgx_loop *table = <tgx_loop *>PyCapsule_GetPointer(loops, NULL)
        cdef int i
        self.kind = POINTWISE
        for i in range(TGX_NTYPES):
            self.loops[i] = table[i]
        self.nscalars = len(scalars)
        for i, at in enumerate(scalars):
            self.scalars[i] = at
        self.bool_to_int, self.cut_scalars = "int" in promote, "cast" in promote
        self.to_float, self.scalars_promote = "float" in promote, "scalars" in promote
        self.fixed_out, self.fixed_inputs = fixed_out, fixed_inputs

    def set_refusals(self, dict refuses, failure, dict choices):
        """Texts of errors about operands and scalar arguments, and the words of str arguments."""
        self.refuses, self.failure, self.choices = refuses, failure, choices

    def set_kernel(self, name, bint takes_out):
        """Compiled kernel, by the name it was registered under."""
        self.kind, self.out_kernel = KERNEL, takes_out
        if name in _pairs:
            self.pair = <const tgx_kernel *>PyCapsule_GetPointer(_pairs[name], NULL)
        elif name in _kernels:
            self.kernel = <kernel_fn>PyCapsule_GetPointer(_kernels[name], NULL)
        else:
            raise ValueError(f"{self.name}: no compiled kernel is called '{name}'")

    def set_composite(self, name):
        """A compiled function over other ops, by the name it was registered under."""
        self.set_kernel(name, False)
        self.kind = COMPOSITE

    def set_python(self, fn, bint composite, tuple keywords=None):
        """A Python function: a composite over other ops, or a kernel that autograd sees as one step.

        keywords: names of the last arguments, which fn takes by keyword only.
        """
        self.python, self.keywords = fn, keywords
        self.kind = COMPOSITE if composite else PYTHON_KERNEL

    def set_rows(self, dict rows):
        """The functions that compute the op on plugins' devices, by type (None: on any without a function of its own)."""
        self.rows = rows or None

    def set_traits(self, *, bint is_view=False, bint has_out=False, bint one_tensor=False, shape_rule=None, node_type=None,
                   returns=None, bint makes_list=False, bint any_device=False):
        """What is true of the op whatever its kernel."""
        self.one_tensor = one_tensor
        self.is_view, self.has_out, self.shape_rule, self.node_type = is_view, has_out, shape_rule, node_type
        self.returns = returns
        self.knows_meta = is_view or shape_rule == "kernel" or self.pair != NULL
        self.makes_list = makes_list
        self.any_device = any_device
        self.is_factory = not any_device and any([self.args[i].kind == A_DEVICE for i in range(self.nargs)])
        self.traits = BROUGHT if self.is_factory else 0

    def set_shape_rule(self, fn):
        """How meta tensors go through the op."""
        self.shape_rule = fn

    def taken_back(self):
        """The op is registered no more: from now on a circle may go through it, and what its Python functions hold."""
        self.loose = True
        track_all()

    def set_rules(self, rules, saved, output_mask):
        """Derivative rules as (argument numbers, function or None, parameter codes), and what they make us save."""
        cdef int i, k
        if len(rules) > MAX_RULES or len(saved) > MAX_SAVED:
            raise ValueError(f"{self.name}: too many derivative rules or saved values")
        self.nsaved = len(saved)
        for i, code in enumerate(saved):
            self.saved[i] = code
        self.nrules = len(rules)
        for i, (targets, fn, params) in enumerate(rules):
            self.rules[i].ntargets, self.rules[i].nparams, self.rules[i].saves = len(targets), len(params), 0
            for k, t in enumerate(targets):
                self.rules[i].targets[k] = t
            for k, code in enumerate(params):
                self.rules[i].params[k] = code
                if code in saved:
                    self.rules[i].saves |= <uint64_t>1 << saved.index(code)
            self.rules[i].identity = fn is None
            self.rules[i].fn = <PyObject *>fn
            Py_INCREF(fn)
        self.differentiable = self.nrules > 0
        self.output_mask = output_mask


# ---- the call ------------------------------------------------------------------------------------------------------

cdef bint any_needs_grad(Op op, PyObject **args) noexcept:
    """Whether some tensor among the arguments takes part in autograd."""
    cdef int i
    cdef PyObject *o
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if isinstance(<object>o, Tensor):
            if needs_grad(<Tensor>o):
                return True
        elif o != <PyObject *>None and _any_in_list(<object>o):
            return True
    return False


cdef bint _any_in_list(object o) noexcept:
    if isinstance(o, (list, tuple)):
        for t in o:
            if isinstance(t, Tensor) and needs_grad(<Tensor>t):
                return True
    return False


cdef bint _is_derived(object o) noexcept:
    cdef Tensor t
    if isinstance(o, Tensor):
        t = <Tensor>o
        return needs_grad(t) or t.bits & DERIVED or (t.base is not None and (<Tensor>t.base).bits & DERIVED)
    if isinstance(o, (list, tuple)):
        for item in o:
            if _is_derived(item):
                return True
    return False


cdef int mark_derived(Op op, PyObject **args, object result) except -1:
    """Inside a Function's forward autograd sees nothing: note at least what depends on inputs that need gradients."""
    cdef int i
    if not op.differentiable:
        return 0
    for i in range(op.ntensors):
        if _is_derived(<object>args[op.tensors[i]]):
            return _mark(result)
    return 0


cdef int _mark(object result) except -1:
    if isinstance(result, Tensor):
        (<Tensor>result).bits |= DERIVED
    elif isinstance(result, (tuple, list)):
        for r in result:
            _mark(r)
    return 0


cdef object call_op(Op op, PyObject **args):
    """Levels, autograd, then the kernel."""
    if tgx_thread_state.flags & TGX_LEVELS:
        result = _levels(op, args, FUNCTIONAL)
        if result is not NotImplemented:
            return result
    return call_below(op, args)


cdef object call_below(Op op, PyObject **args):
    """Autograd, then the kernel."""
    cdef object result
    if op.pair != NULL and not tgx_thread_state.no_grad and not any_needs_grad(op, args):
        result = _call_kernel(op, args)
    elif op.custom is not None:
        result = op.custom.call(op, args)
    elif tgx_thread_state.no_grad:
        result = forward(op, args, NULL)
        if tgx_thread_state.in_forward:
            mark_derived(op, args, result)
    elif op.kind == COMPOSITE or not any_needs_grad(op, args):
        result = forward(op, args, NULL)
    else:
        result = record_op(op, args, NULL, False)
    if op.is_view:
        _link_views(op, <object>args[op.tensors[0]], result, 2)
    if op.returns is not None and type(result) is tuple:
        return _tuple_new(op.returns, result)
    if tgx_thread_state.inference and _made_here(op, args, result):
        _mark_inference(result)
    return result


cdef object _tuple_new = tuple.__new__


cdef int _link_views(Op op, object base, object result, int own) except -1:
    """Note whose memory a view shares, so that autograd follows in-place writes. own: references to it that are ours."""
    cdef Tensor t, b
    if op.kind == COMPOSITE or not isinstance(base, Tensor):
        return 0
    if not isinstance(result, Tensor):
        for r in result:
            _link_views(op, base, r, 3)
        return 0
    t, b = <Tensor>result, <Tensor>base
    if t is b or t.storage is not b.storage:
        return 0
    # a view that was made a leaf by requires_grad_() is the base of its own views
    set_base(t, <Tensor>b.base if b.bits & DIFF_VIEW and not b.bits & REQUIRES_GRAD else b, own)
    t.bits |= DIFF_VIEW
    if b.extra is not None and "made_by" in b.extra:        # a view that a Function returned
        t.extra = {"made_by": b.extra["made_by"]}
    if tgx_thread_state.no_grad:
        t.bits |= DETACHED_VIEW
    else:
        t.bits |= b.bits & DETACHED_VIEW
    t.view_version = version_of(t)
    return 0


cdef bint _made_here(Op op, PyObject **args, object result) noexcept:
    """Whether the call made tensors: not those it was given, and no window on one from outside inference mode."""
    cdef Tensor first, made
    if op.kind == COMPOSITE or op.writes or <PyObject *>result == args[op.tensors[0]]:
        return False
    if op.ntensors == 0 or not isinstance(<object>args[op.tensors[0]], Tensor):
        return True
    first = <Tensor><object>args[op.tensors[0]]
    if first.bits & INFERENCE:
        return True
    made = <Tensor>result if isinstance(result, Tensor) else None
    return not op.is_view and (made is None or made.storage is None or made.storage is not first.storage)


cdef int _mark_inference(object result) except -1:
    if isinstance(result, Tensor):
        (<Tensor>result).bits |= INFERENCE
    elif isinstance(result, (tuple, list)):
        for r in result:
            _mark_inference(r)
    return 0


cdef object forward(Op op, PyObject **args, PyObject *out):
    """The kernel alone."""
    if op.kind == POINTWISE:
        return _pointwise(op, args, out)
    cdef int traits
    if op.pair != NULL:
        return _call_kernel(op, args)
    if op.kind == KERNEL:
        traits = 0 if op.is_view else _traits(op, args)
        if traits & AWAY:
            return _away(op, args, out, traits)
        if out != NULL and (<Tensor>out).device_id and not op.knows_meta and op.ntensors:
            _refuse_device(op, "cpu", "meta")
        if traits == LARGE:
            return _run_held(_run_kernel, op, args, out, False)
        if op.out_kernel:
            args[op.nargs] = out if out != NULL else <PyObject *>None
        return op.kernel(args)
    if op.custom is not None:
        return op.custom.run(op, args)
    return run_python(op, args)


cdef object _away(Op op, PyObject **args, PyObject *out, int traits):
    """A compiled kernel's op where tensors are on meta or a plugin's device, or may be made there."""
    if traits & BROUGHT and not op.any_device:
        result = _on_device(op, args, out)
        if result is not NotImplemented:
            return result
    if traits & ON_META and not op.knows_meta:
        if out != NULL and (<Tensor>out).device_id == CPU:
            _refuse_device(op, "meta", "cpu")
        return _meta_result(op, args)
    return _run_kernel(op, args, out)


cdef object _run_kernel(Op op, PyObject **args, PyObject *out):
    if op.out_kernel:
        args[op.nargs] = out if out != NULL else <PyObject *>None
    return op.kernel(args)


cdef object run_python(Op op, PyObject **args):
    """A Python kernel or composite: nobody is asked about what it calls. Levels see the inside of a composite that they
    did not take as a whole; under a kernel there are none, and grad mode is off."""
    cdef tgx_state *st = &tgx_thread_state
    cdef uint32_t flags = st.flags
    cdef int32_t active = st.active
    cdef uint8_t no_grad = st.no_grad
    if op.kind == PYTHON_KERNEL:
        if any_away(op, args):
            result = _on_device(op, args, NULL)
            if result is not NotImplemented:
                return result
            if not op.knows_meta:
                return _meta_result(op, args)
        st.no_grad = 1
        st.flags, st.active = 0, 0
    st.flags &= TGX_LEVELS
    st.below += 1
    try:
        if op.kernel != NULL:
            return op.kernel(args)
        if op.keywords is not None:
            return PyObject_Vectorcall(op.python, args, op.nargs - len(op.keywords), <PyObject *>op.keywords)
        return PyObject_Vectorcall(op.python, args, op.nargs, NULL)
    finally:
        st.flags, st.active = flags, active
        st.no_grad = no_grad
        st.below -= 1


cdef bint any_away(Op op, PyObject **args) noexcept:
    cdef int i
    cdef object o
    for i in range(op.ntensors):
        o = <object>args[op.tensors[i]]
        if isinstance(o, Tensor):
            if (<Tensor>o).device_id != 0:
                return True
        elif isinstance(o, (list, tuple)):
            for t in o:
                if isinstance(t, Tensor) and (<Tensor>t).device_id != 0:
                    return True
    return False


cdef enum:                  # what is among the tensors of a call
    ON_META = 1
    LARGE = 2
    BROUGHT = 4             # on a device of a plugin, or a factory that may be asked for one
    AWAY = ON_META | BROUGHT
    HOLD_FROM = 1024        # elements from which a tensor is LARGE: kernels on less keep the GIL


cdef inline int _traits_of(Tensor t) noexcept:
    if t.device_id != CPU:
        return ON_META if t.device_id == META else BROUGHT
    return LARGE if t.count >= HOLD_FROM else 0


cdef int _traits(Op op, PyObject **args) noexcept:
    cdef int i, found = op.traits
    cdef PyObject *o
    for i in range(op.ntensors):
        o = args[op.tensors[i]]
        if isinstance(<object>o, Tensor):
            found |= _traits_of(<Tensor>o)
        elif o != <PyObject *>None:
            found |= _traits_of_list(<object>o)
    return found


cdef int _traits_of_list(object o) noexcept:
    cdef int found = 0
    if isinstance(o, (list, tuple)):
        for t in o:
            if isinstance(t, Tensor):
                found |= _traits_of(<Tensor>t)
    return found


cdef int _refuse_device(Op op, str expected, str got) except -1:
    raise RuntimeError(f"{op.title}(): Expected out tensor to have device {expected}, but got {got} instead")


cdef object _meta_result(Op op, PyObject **args):
    if op.shape_rule is None:
        raise NotImplementedError(f"{op.name} has no shape rule, so it cannot run on meta tensors; "
                                  "give its record `shape=` or run it on the cpu")
    return op.shape_rule(*[<object>args[i] for i in range(op.nargs)])


# ---- reading boxed arguments ---------------------------------------------------------------------------------------

cdef int64_t as_int(PyObject *o) except? -9223372036854775807:
    cdef object v = <object>o
    if isinstance(v, Tensor):
        v = (<Tensor>v)._only_element()
    return v


cdef double as_float(PyObject *o) except? -1e308:
    cdef object v = <object>o
    return float(v)


cdef int as_ints(PyObject *o, int64_t *into, int room, int want) except -1:
    """Ints of a list, or one int repeated `want` times; how many there are."""
    cdef object v = <object>o
    cdef int i, n
    if isinstance(v, (tuple, list)):
        n = len(v)
        if n > room:
            raise RuntimeError(f"expected at most {room} numbers, got {n}")
        for i in range(n):
            item = v[i]
            into[i] = as_int(<PyObject *>item)
            if type(item) is not int and len(v) != n:       # its __index__ ran foreign code
                raise RuntimeError("a list of numbers changed its length while it was read")
        return n
    n = want if want > 0 else 1
    for i in range(n):
        into[i] = as_int(o)
    return n


cdef tgx_scalar as_scalar(object o) except *:
    """A Python number, NumPy scalar or 0-d tensor for a loop. Integers wrap to 64 bits only if they fit."""
    cdef tgx_scalar s
    s.given = 1
    s.im = 0
    if isinstance(o, Tensor):
        o = (<Tensor>o)._only_element()
    if isinstance(o, float):
        s.f = o
        s.i = <int64_t>s.f if -9.2e18 < s.f < 9.2e18 else 0
    elif isinstance(o, int):
        try:
            s.i = o
        except OverflowError:
            raise RuntimeError(f"value cannot be converted to type int64_t without overflow: {o}") from None
        s.f = <double>s.i
    elif isinstance(o, complex):
        s.f, s.im = o.real, o.imag
        s.i = <int64_t>s.f if -9.2e18 < s.f < 9.2e18 else 0
    elif o is None:
        s.given = 0
        s.f = s.i = 0
    elif hasattr(o, "item"):
        item = o.item()
        if type(item) is type(o):       # numpy.longdouble is its own item
            item = complex(o) if type(o).__name__ == "clongdouble" else float(o)
        return as_scalar(item)
    else:
        raise TypeError(f"expected a number, got {type(o).__name__}")
    return s
