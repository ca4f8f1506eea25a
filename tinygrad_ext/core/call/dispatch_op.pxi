# Op, as the registry makes it from a record. Part of dispatch.pyx.

cdef class Elsewhere:
    cdef object call(self, Op op, PyObject **args):
        raise NotImplementedError(op.name)

    cdef object run(self, Op op, PyObject **args):
        raise NotImplementedError(op.name)


_OPTIONS = ["dtype", "layout", "device", "pin_memory", "requires_grad"]


cdef int _options_at(list names) except -2:
    cdef Py_ssize_t i = len(names) - len(_OPTIONS)
    if "requires_grad" in names:
        while i >= 0 and names[i:i + len(_OPTIONS)] != _OPTIONS:
            i -= 1
        return <int>i if i >= 0 else -1
    return -1


# What an op is asked for by few programs is made when it is: of most ops it never is, and the import would pay for all.
cdef object _make_named = None
cdef object _make_node_name = None


def set_makers(make_named, make_node_name):
    """make_named(what set_traits got): classes of several results, without out= and with it. make_node_name(schema)."""
    global _make_named, _make_node_name
    _make_named, _make_node_name = make_named, make_node_name


cdef object named(Op op):
    if type(op.returns) is tuple:
        op.returns, op.returns_out = _make_named(op.returns)
    return op.returns


cdef int settle_rules(Op op) except -1:
    if op.rules_from is not None:
        op.rules_from(op)
        op.rules_from = None            # not before: another thread may ask meanwhile
    return 0


cdef int _leading(Op op) noexcept:
    cdef int i
    for i in range(op.nargs):
        if op.args[i].single != A_TENSOR if i < op.ntensors else not op.args[i].flags & F_DEFAULT:
            return -1
    return op.ntensors if 0 < op.ntensors <= op.npositional else -1


cdef class Op:
    """One overload of an op: schema, kernel, derivative rules. Made by registry from a record."""

    def __init__(self, name, title, record, schema, args, nreturns):
        cdef int i
        if len(args) > MAX_ARGS:
            raise ValueError(f"{name}: {len(args)} arguments, at most {MAX_ARGS} are possible")
        self.name, self.title, self.record, self.schema, self.nreturns = name, title, record, schema, nreturns
        self.kind = COMPOSITE
        self.fixed_out = -1
        self.options = _options_at([arg[0] for arg in args])
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
        self.nleading = _leading(self)
        self.c_title = PyUnicode_AsUTF8(self.title)

    def __dealloc__(self):
        cdef int i
        for i in range(self.nargs):
            Py_XDECREF(self.args[i].name)
            Py_XDECREF(self.args[i].default)
        for i in range(self.nrules):
            Py_XDECREF(self.rules[i].fn)
            Py_XDECREF(self.rules[i].called)
        PyMem_Free(self.rules)

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
    def node_type(self):
        """Name that is shown as grad_fn."""
        if self.shown_as is None:
            self.shown_as = _make_node_name(self.schema)
        return self.shown_as

    @property
    def loop_dtypes(self):
        """Names of the dtypes that a pointwise op has a loop for."""
        return [dtype_of(i).name for i in range(<int>TGX_NTYPES) if self.loops[<int>i] != NULL]

    @property
    def writes_out(self):
        """Whether there is a form with `out=`."""
        return self.has_out

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

    def set_traits(self, *, bint is_view=False, bint has_out=False, bint one_tensor=False, shape_rule=None, tuple returns=None,
                   bint makes_list=False, bint any_device=False, words=()):
        """What is true of the op whatever its kernel. words: the tags of its record. returns: what names of several results
        are made of."""
        self.one_tensor = one_tensor
        self.is_view, self.has_out, self.shape_rule, self.returns = is_view, has_out, shape_rule, returns
        self.knows_meta = is_view or shape_rule == "kernel" or self.pair != NULL
        self.makes_list = makes_list
        self.any_device = any_device
        names = [a.name for a in self.schema.args]
        named = dict([word.split(":") for word in words if ":" in word])
        self.only_apart = names.index(named["apart"]) if "apart" in named else -1
        self.may_be_target = names.index(named["itself"]) if "itself" in named else -1
        self.apart = ("apart" in words or "others_apart" in words or self.only_apart >= 0
                      or (self.pair != NULL and self.pair.flags & TGX_APART))
        self.first_apart = "others_apart" in words
        self.exact_inplace = "exact_inplace" in words
        self.fills = "fills" in words
        self.exact = "exact" in words or self.exact_inplace or (self.kind != POINTWISE and "casts" not in words)
        self.bytes = "bytes" in words
        self.adopts = names.index("dtype") if "adopts" in words else -1
        self.is_factory = not any_device and any([self.args[i].kind == A_DEVICE for i in range(self.nargs)])
        self.traits = BROUGHT if self.is_factory or any([self.args[i].kind == A_DTYPE for i in range(self.nargs)]) else 0

    def set_shape_rule(self, fn):
        """How meta tensors go through the op."""
        self.shape_rule = fn

    def taken_back(self):
        """The op is registered no more: from now on a circle may go through it, and what its Python functions hold."""
        self.loose = True
        track_all()

    def set_rules_later(self, rules_from, bint differentiable):
        """rules_from(op) calls `set_rules` when the first call is recorded. differentiable: whether it will find any."""
        self.rules_from, self.differentiable = rules_from, differentiable

    def settle_rules(self):
        """Have the rules set now, where that was put off."""
        settle_rules(self)

    def set_rules(self, rules, saved, output_mask, holomorphic):
        """Derivative rules as (argument numbers, function or None, parameter codes, the Op that the function is a call of, the code
        of the factor of "grad * factor"; None for neither), and what they make us save."""
        cdef int i, k
        cdef Rule *made = NULL
        if len(rules) > MAX_RULES or len(saved) > MAX_SAVED:
            raise ValueError(f"{self.name}: too many derivative rules or saved values")
        if rules:
            made = <Rule *>PyMem_Calloc(len(rules), sizeof(Rule))
            if made == NULL:
                raise MemoryError()
        for i, (targets, fn, params, called, factor) in enumerate(rules):
            made[i].ntargets, made[i].nparams, made[i].saves = len(targets), len(params), 0
            for k, t in enumerate(targets):
                made[i].targets[k] = t
            for k, code in enumerate(params):
                made[i].params[k], made[i].places[k] = code, saved.index(code) if code in saved else -1
                if code in saved:
                    made[i].saves |= <uint64_t>1 << made[i].places[k]
            made[i].factor = saved.index(factor) if factor is not None else -1
            made[i].identity = fn is None
            made[i].fn, made[i].called = <PyObject *>fn, NULL if called is None else <PyObject *>called
        if self.rules != NULL:          # another thread was quicker: its rules are the same, and whole
            PyMem_Free(made)
            return
        for _, fn, _, called, _ in rules:
            Py_INCREF(fn)
            if called is not None:
                Py_INCREF(called)
        self.nsaved, self.nrules = len(saved), len(rules)
        for i, code in enumerate(saved):
            self.saved[i] = code
        self.rules = made
        self.differentiable = self.nrules > 0
        self.output_mask, self.holomorphic = output_mask, holomorphic
