# cython: language_level=3
"""The two callables over one record, and who is asked before the record's op is called.

OpFunction (`tinygrad_ext.add`) has no `__get__`, so a function kept as a class attribute does not bind.
OpMethod (`Tensor.add`) is a method descriptor. Both are called by vectorcall: bind (arguments.pyx),
one test of the thread's state word, op (dispatch.pyx). Modes and types with `__torch_function__` are asked from here
(overrides.pyx); levels further down, in call_op. One class with a switch will not do: the mark by which the interpreter
calls a method without binding it first belongs to the type.
"""
cdef extern from "Python.h":
    object PyMethod_New(object fn, object instance)

from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.call.arguments cimport Bound, bind, explain_failure
from tinygrad_ext.core.call.dispatch cimport (
    MAX_ARGS, TGX_MODES, TGX_NO_SUBCLASS, TGX_SKIP_ONE, UNKNOWN, call_below, call_op, call_plain, state, tgx_state, uint32_t,
)
from tinygrad_ext.core.call.dispatched cimport enter_types, leave_types, must_dispatch
from tinygrad_ext.core.call.inplace cimport call_inplace, call_out, inplace_below
from tinygrad_ext.core.call.elsewhere cimport must_convert
from tinygrad_ext.core.call.elsewhere import own_types
from tinygrad_ext.core.call.levels cimport check_carried, holds_carried
from tinygrad_ext.core.call.mode_stack cimport modes_on
from tinygrad_ext.core.call.overloaded cimport (
    INDEX_DEPTH, NO_FOREIGN, brings_function, holds_overloaded, is_registered, overloaded,
)
from tinygrad_ext.core.call.overrides cimport all_declined, ask
from tinygrad_ext.core.data.tensor cimport Parameter, Tensor, exact, needs_grad
from tinygrad_ext.core.data.types cimport F_NESTED, F_NUMBER

cdef extern from "vectorcall.h":
    void tgx_enable_vectorcall(object type, Py_ssize_t offset, bint method)
    void tgx_open_type(object type)
    void tgx_name_type(object type, const char *name)

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(PyObject *t, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *t)


cdef dict _readers = {}                 # signature_of, function_by_path, overload_of and the like, of the layers above


def set_readers(**functions):
    """Hand in what the callables need to know of the table they stand in."""
    _readers.update(functions)


cdef list _type_names = []              # keeps the text of public type names alive


def name_type(type t, str name):
    """Give a compiled type the name under which users know it: "tinygrad_ext.Tensor"."""
    _type_names.append(name.encode())
    tgx_name_type(t, _type_names[len(_type_names) - 1])


# ---- one call ------------------------------------------------------------------------------------------------------

cdef object _ask_overrides(OpFunction f, PyObject **args, Py_ssize_t n, PyObject *kwnames, bint brings):
    """The answer of a mode or of a type among the arguments. NotImplemented when there is nobody to ask."""
    cdef tgx_state *st = state()
    cdef uint32_t flags = st.flags & ~<uint32_t>NO_FOREIGN      # that was for the binding, which is done
    cdef list found = None
    cdef Py_ssize_t i, nkw = 0 if kwnames == NULL else PyTuple_GET_SIZE(kwnames)
    st.flags = flags
    if brings and holds_carried(args, n + nkw):
        check_carried(args, n + nkw)
    if st.below:
        return NotImplemented
    if flags & TGX_SKIP_ONE:
        return _unseen(f, args, n, kwnames)
    if brings and not flags & TGX_NO_SUBCLASS:
        found = overloaded(args, n + nkw, INDEX_DEPTH if _takes_any(f) else 1)
    if not found and not modes_on(st):
        return NotImplemented
    positional = PyTuple_New(n)
    for i in range(n):
        Py_INCREF(<object>args[i])
        PyTuple_SET_ITEM(positional, i, <object>args[i])
    keywords = {}
    for i in range(nkw):
        keywords[<object>PyTuple_GET_ITEM(kwnames, i)] = <object>args[n + i]
    result = ask(f if f.seen_as is None else f.seen_as, None, found or [], positional, keywords)
    return _declined(f, args, n, kwnames) if result is NotImplemented else result


cdef object _declined(OpFunction f, PyObject **args, Py_ssize_t n, PyObject *kwnames):
    """The call as if nobody had registered a handler: what passed for a tensor for their sake is bound anew."""
    cdef tgx_state *st = state()
    st.flags |= NO_FOREIGN
    try:
        return _vectorcall(<PyObject *>f, args, n, kwnames)
    finally:
        st.flags &= ~<uint32_t>NO_FOREIGN


cdef inline bint _takes_any(OpFunction f):
    """Whether an argument may be anything, as an index is."""
    cdef Op op = <Op>f.first
    return op.nargs > 1 and op.args[1].flags & F_NESTED


cdef object _unseen(OpFunction f, PyObject **args, Py_ssize_t n, PyObject *kwnames):
    """Run an op whose call was seen already: nobody is asked, nor about anything inside."""
    cdef tgx_state *st = state()
    cdef uint32_t flags = st.flags & ~<uint32_t>TGX_SKIP_ONE
    st.flags = (flags | TGX_NO_SUBCLASS) & ~<uint32_t>TGX_MODES
    try:
        return _vectorcall(<PyObject *>f, args, n, kwnames)
    finally:
        st.flags = flags


cdef object _call_bound(OpFunction f, Op op, Bound *b):
    if b.out != NULL:
        return call_out(op, b.args, <object>b.out)
    if f.inplace:
        return call_inplace(op, b.args)
    return call_op(op, b.args)


cdef object _call_dispatched(OpFunction f, Op op, Bound *b):
    """The same for tensors of classes that carry their operations out themselves."""
    level = enter_types()
    try:
        return _call_bound(f, op, b)
    finally:
        leave_types(level)


cdef object _refuse(OpFunction f, PyObject **args, Py_ssize_t n, PyObject *kwnames):
    """No schema fits: someone else's type may still handle it, else TypeError."""
    cdef Py_ssize_t i, nkw = 0 if kwnames == NULL else PyTuple_GET_SIZE(kwnames)
    cdef bint foreign = False
    if not state().below:
        for i in range(n + nkw):
            if brings_function(<object>args[i]) or holds_overloaded(<object>args[i], 1):
                foreign = True
        if foreign:
            result = _ask_overrides(f, args, n, kwnames, True)
            if result is not NotImplemented:
                return result
    positional = [<object>args[i] for i in range(n)]
    keywords = {} if kwnames == NULL else dict(zip(<object>kwnames, [<object>args[n + i] for i in range(nkw)]))
    meant = _readers["understand"](f, positional, keywords)
    if meant is not None:
        return meant()
    error = explain_failure(f.ops, args, n, kwnames, f.method)
    if state().flags & NO_FOREIGN:
        state().flags &= ~<uint32_t>NO_FOREIGN
        error.taken_as_is = f           # how an operator tells this error from one of a handler's own
        more = _readers["who_declined"]([type(o) for o in overloaded(args, n + nkw, INDEX_DEPTH)])
    else:
        more = _readers["why_not_handled"]([type(<object>args[i]) for i in range(n + nkw)])
    if _of_owner(f):
        more += f" [{f.ops[0].name}{_of_owner(f)}]"
    if more:
        error.args = (f"{error.args[0]}{more}",)
    if str(getattr(f, "__module__", "")).startswith("tinygrad_ext.ops."):
        raise _readers["refused_packet"](f.ops, n, keywords, error)
    raise error


cdef inline int _take_plain(Op op, PyObject **given, PyObject **args) noexcept:
    """Bind a call of tensors, and of plain numbers in the place of further ones, as nearly all calls of small ops are: nobody is
    to be asked, nothing to be looked up. UNKNOWN where there is something else, or else whether one needs a gradient."""
    cdef int i, needed = 0
    for i in range(op.nleading):
        if exact(<object>given[i]):
            needed |= needs_grad(<Tensor>given[i])
        elif i == 0 or not op.args[i].flags & F_NUMBER or not (
                PyFloat_CheckExact(<object>given[i]) or PyLong_CheckExact(<object>given[i])):
            return UNKNOWN
        args[i] = given[i]
    for i in range(op.nleading, op.nargs):
        args[i] = op.args[i].default
    return needed


cdef object _vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *kwnames):
    cdef Py_ssize_t n = nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
    cdef PyObject *taken[MAX_ARGS + 1]
    cdef PyObject *op = (<OpFunction>callable).first
    cdef int needed
    if n == (<Op>op).nleading and kwnames == NULL and not state().flags:
        needed = _take_plain(<Op>op, args, taken)
        if needed != UNKNOWN:
            return inplace_below(<Op>op, taken) if (<OpFunction>callable).inplace else call_plain(<Op>op, taken, needed)
    return _bind_and_call(<OpFunction>callable, args, n, kwnames)


cdef object _bind_and_call(OpFunction f, PyObject **args, Py_ssize_t n, PyObject *kwnames):
    cdef Bound b
    cdef int i
    cdef Op op
    cdef object result
    if f.method and (n == 0 or not isinstance(<object>args[0], Tensor)) and (n == 0 or not brings_function(<object>args[0])):
        raise TypeError(f"descriptor '{f.name}' for 'tinygrad_ext.Tensor' objects doesn't apply to a "
                        f"'{type(<object>args[0]).__name__ if n else 'missing'}' object")
    for i in range(f.nops):
        op = <Op>f.first if i == 0 else <Op>f.ops[i]
        if not bind(op, args, n, kwnames, f.method, &b):
            continue
        try:
            if state().flags or b.overloaded:
                result = _ask_overrides(f, args, n, kwnames, b.overloaded)
                if result is not NotImplemented:
                    return result
                if b.overloaded and must_dispatch(args, n if kwnames == NULL else n + PyTuple_GET_SIZE(kwnames)):
                    return _call_dispatched(f, op, &b)
            elif b.out == NULL:
                return inplace_below(op, b.args) if f.inplace else call_below(op, b.args)
            return _call_bound(f, op, &b)
        finally:
            Py_XDECREF(b.owned)
    return _refuse(f, args, n, kwnames)


cdef object call_packet(OpFunction f, PyObject **args, Py_ssize_t n):
    return _vectorcall(<PyObject *>f, args, n, NULL)


cdef object binary(PyObject *method, PyObject *reflected, object a, object b):
    """An operator of two operands: a's method, or b's reflected one; NotImplemented for what neither takes."""
    cdef PyObject *args[2]
    cdef PyObject *taken[MAX_ARGS + 1]
    cdef PyObject *op
    cdef int i
    cdef bint number = PyFloat_CheckExact(b) or PyLong_CheckExact(b)
    if method != NULL and exact(a) and (number or exact(b)) and type(<object>method) is OpMethod and not state().flags:
        op = (<OpFunction>method).first     # as _vectorcall does, with nothing left to ask
        if (<Op>op).nleading == 2 and not (<OpFunction>method).inplace and (not number or (<Op>op).args[1].flags & F_NUMBER):
            taken[0], taken[1] = <PyObject *>a, <PyObject *>b
            for i in range(2, (<Op>op).nargs):
                taken[i] = (<Op>op).args[i].default
            return call_plain(<Op>op, taken, needs_grad(<Tensor>a) | (not number and needs_grad(<Tensor>b)))
    args[0], args[1] = <PyObject *>a, <PyObject *>b
    if not isinstance(a, Tensor):
        method = reflected
        args[0], args[1] = <PyObject *>b, <PyObject *>a
    if method == NULL:
        return NotImplemented
    if type(<object>method) is not OpMethod:
        return (<object>method)(<object>args[0], <object>args[1])
    if exact(a) and exact(b):
        return _vectorcall(method, args, 2, NULL)
    return _with_others(method, args, isinstance(a, Tensor))


cdef dict _turned_to = {}               # what Python looks for in the operand on the right when a method declines


def turn_to(method, str name):
    """Say what an operator's method leaves to the operand on its right: `__radd__` of add."""
    _turned_to[method] = name


cdef object _with_others(PyObject *method, PyObject **args, bint on_left):
    """An operator's call whose other operand may have a way of its own, to which Python turns then."""
    other = <object>args[1]
    try:
        return _vectorcall(method, args, 2, NULL)
    except TypeError as error:
        if all_declined(error, <object>method):
            return NotImplemented
        if isinstance(other, (Tensor, int, float, complex)) or must_convert(other):
            raise
        if brings_function(other) and getattr(error, "taken_as_is", None) is not <object>method:
            name = _turned_to.get(<object>method) if on_left and not is_registered(other) else None
            if name is None or getattr(type(other), name, None) in (None, getattr(object, name, None)):
                raise                   # nobody is left, and the handler's own words say more than Python's
        return NotImplemented


# ---- the objects ---------------------------------------------------------------------------------------------------

cdef class PublicCallable:
    """What is called by its public name: pickled as that name, and copied as itself."""

    def __reduce__(self):
        return _readers["function_by_path"], (getattr(self, "__module__"), getattr(self, "__qualname__"))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


cdef class OpFunction(PublicCallable):
    """A public function over one or more op overloads."""

    def __init__(self, name, ops, *, module="tinygrad_ext", doc=None, owner=None, bint inplace=False):
        self.vectorcall = <void *>_vectorcall
        self.method = isinstance(self, OpMethod)
        self.inplace = inplace
        self.name, self.owner, self.doc = name, owner, doc
        for key, value in (("__name__", name), ("__module__", module),
                           ("__qualname__", f"Tensor.{name}" if self.method else name)):
            setattr(self, key, value)
        self.set_ops(ops)

    def set_ops(self, ops):
        """Replace the overloads, tried in this order."""
        self.ops = list(ops)
        self.nops = len(self.ops)
        self.first = <PyObject *>self.ops[0]

    @property
    def candidates(self):
        """The Op objects, in the order in which they are tried."""
        return tuple(self.ops)

    @property
    def __signature__(self):
        return _readers["signature_of"](self)

    @property
    def __text_signature__(self):
        return _readers["text_signature_of"](self)

    @property
    def __kwdefaults__(self):
        found = [p for p in self.__signature__.parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is not p.empty]
        return {p.name: p.default for p in found} or None

    @property
    def __doc__(self):
        return _doc(self)

    def __repr__(self):
        if self.method:
            return f"<method '{self.name}' of 'tinygrad_ext.Tensor' objects{_of_owner(self)}>"
        if _of_owner(self):
            return f"<function {getattr(self, '__module__')}.{getattr(self, '__qualname__')}{_of_owner(self)}>"
        return f"<built-in function {self.name}>"


cdef class OpMethod(OpFunction):
    """A Tensor method over one or more op overloads."""

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __objclass__(self):
        return Tensor

    @property
    def __doc__(self):          # a class has a docstring of its own, which would hide the inherited property
        return _doc(self)


cdef class OpPacket(OpFunction):
    """`ops.aten.add`: all overloads of an op, each of them also an attribute."""

    def __getattr__(self, name):
        return _readers["overload_of"](self, name)

    def overloads(self):
        """Names of the overloads, in the order in which they are tried; "default" for the one without a name."""
        return [o.schema.overload or "default" for o in self.ops]

    @property
    def __doc__(self):
        return _doc(self)


cdef object _doc(OpFunction f):
    return f.doc if f.doc is not None else _readers["doc_of"](f)


cdef str _of_owner(OpFunction f):
    """" (tgx-vision 1.0)" for what a plugin or a program brought."""
    return "" if f.owner is None or f.owner.distribution == "tinygrad_ext" else f" ({f.owner})"


def enable_vectorcall(type cls):
    """Let the instances of a Python subclass of OpFunction be called as quickly as an OpFunction."""
    cdef OpFunction probe = OpFunction.__new__(OpFunction)
    tgx_enable_vectorcall(cls, <char *>&probe.vectorcall - <char *><PyObject *>probe, False)


def _install():
    cdef OpFunction probe = OpFunction.__new__(OpFunction)
    cdef Py_ssize_t offset = <char *>&probe.vectorcall - <char *><PyObject *>probe
    tgx_enable_vectorcall(OpFunction, offset, False)
    tgx_enable_vectorcall(OpPacket, offset, False)
    tgx_enable_vectorcall(OpMethod, offset, True)
    tgx_open_type(Tensor)
    tgx_open_type(Parameter)
    own_types(OpFunction, OpMethod)


_install()
