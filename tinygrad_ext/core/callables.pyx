# cython: language_level=3
"""The two callables over one record, and the slots that may look at a call.

OpFunction (`tinygrad_ext.add`) has no `__get__`, so a function kept as a class attribute does not bind.
OpMethod (`Tensor.add`) is a method descriptor. Both are called by vectorcall: bind, one test of the thread's
word, kernel. A handler in a slot is called as `handler(func, types, args, kwargs)` with its own bit off, and
goes on by calling `func(*args, **kwargs)`; so each slot sees each call once, outermost first.
"""
cdef extern from "Python.h":
    object PyMethod_New(object fn, object instance)

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from tinygrad_ext.core.arguments cimport Bound, bind, brings_function, explain_failure
from tinygrad_ext.core.dispatch cimport (
    TGX_NO_SUBCLASS, TGX_NSLOTS, TGX_SLOT_BITS, TGX_SLOT_OVERRIDE, call_op, state, tgx_state, uint32_t,
)
from tinygrad_ext.core.tensor cimport Tensor, exact
from tinygrad_ext.core.inplace cimport call_inplace, call_out

cdef extern from "vectorcall.h":
    void tgx_enable_vectorcall(object type, Py_ssize_t offset, bint method)
    void tgx_open_type(object type)

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(PyObject *t, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *t)

cdef object _type_override = None       # overrides.dispatch: asks __torch_function__ of the argument types
SLOTS = ("override", "transform", "tracer", "profiler", "autograd")


cdef dict _readers = {}                 # functions of the registry: signature_of, function_by_path


def set_readers(**functions):
    """Hand in what the callables need to know of the table they stand in."""
    _readers.update(functions)


def set_type_override(fn):
    """The function that asks the argument types: fn(func, args, kwargs)."""
    global _type_override
    _type_override = fn


def set_handler(str slot, handler):
    """Fill one of this thread's slots (None empties it); returns the handler that was there."""
    cdef int k = SLOTS.index(slot)
    cdef tgx_state *st = state()
    old = <object>st.handler[k] if st.handler[k] != NULL else None
    if handler is None:
        st.flags &= ~(<uint32_t>1 << k)
        st.handler[k] = NULL
    else:
        Py_INCREF(handler)
        st.handler[k] = <PyObject *>handler
        st.flags |= <uint32_t>1 << k
    if old is not None:
        Py_XDECREF(<PyObject *>old)
    return old


def subclass_dispatch(bint on):
    """Switch the asking of `__torch_function__` for this thread; returns whether it was on."""
    cdef tgx_state *st = state()
    was = not st.flags & TGX_NO_SUBCLASS
    if on:
        st.flags &= ~<uint32_t>TGX_NO_SUBCLASS
    else:
        st.flags |= TGX_NO_SUBCLASS
    return was


def has_torch_function(args):
    """Whether a call with these arguments is somebody's to handle: a mode is active, or a type among them overrides."""
    for item in args:
        if has_torch_function_unary(item):
            return True
    return bool(state().flags & <uint32_t>1 << TGX_SLOT_OVERRIDE)


def has_torch_function_unary(arg):
    """has_torch_function((arg,))"""
    cdef uint32_t flags = state().flags
    return bool(flags & <uint32_t>1 << TGX_SLOT_OVERRIDE or (not flags & TGX_NO_SUBCLASS and brings_function(arg)))


def has_torch_function_variadic(*args):
    """has_torch_function(args)"""
    return has_torch_function(args)


# ---- one call ------------------------------------------------------------------------------------------------------

cdef object _through_slots(OpFunction f, PyObject **args, Py_ssize_t n, PyObject *kwnames, bint overloaded):
    """Offer the call to the outermost active handler. Returns NotImplemented when none is active."""
    cdef tgx_state *st = state()
    cdef uint32_t flags = st.flags
    cdef int k
    cdef Py_ssize_t i
    if st.below or not (flags & TGX_SLOT_BITS or overloaded):
        return NotImplemented
    positional = tuple([<object>args[i] for i in range(n)])
    keywords = {}
    if kwnames != NULL:
        for i in range(PyTuple_GET_SIZE(kwnames)):
            keywords[<object>PyTuple_GET_ITEM(kwnames, i)] = <object>args[n + i]
    for k in range(TGX_NSLOTS):
        if k == TGX_SLOT_OVERRIDE + 1 and overloaded and not flags & TGX_NO_SUBCLASS:
            return _type_override(f, positional, keywords)
        if flags & (<uint32_t>1 << k):
            handler = <object>st.handler[k]
            st.flags = flags & ~(<uint32_t>1 << k)
            try:
                return handler(f, (), positional, keywords)
            finally:
                st.flags |= flags & (<uint32_t>1 << k)
    return NotImplemented


cdef object _call_bound(OpFunction f, Op op, Bound *b):
    if b.out != NULL:
        return call_out(op, b.args, <object>b.out)
    if f.inplace:
        return call_inplace(op, b.args)
    return call_op(op, b.args)


cdef object _refuse(OpFunction f, PyObject **args, Py_ssize_t n, PyObject *kwnames):
    """No schema fits: someone else's type may still handle it, else TypeError."""
    cdef Py_ssize_t i, nkw = 0 if kwnames == NULL else PyTuple_GET_SIZE(kwnames)
    cdef bint foreign = False
    if not state().below:
        for i in range(n + nkw):
            if brings_function(<object>args[i]):
                foreign = True
        if foreign:
            result = _through_slots(f, args, n, kwnames, True)
            if result is not NotImplemented:
                return result
    raise explain_failure(f.ops, args, n, kwnames, f.method)


cdef object _vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *kwnames):
    cdef OpFunction f = <OpFunction>callable
    cdef Py_ssize_t n = nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
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
                result = _through_slots(f, args, n, kwnames, b.overloaded)
                if result is not NotImplemented:
                    return result
            return _call_bound(f, op, &b)
        finally:
            Py_XDECREF(b.owned)
    return _refuse(f, args, n, kwnames)


cdef object call_packet(OpFunction f, PyObject **args, Py_ssize_t n):
    return _vectorcall(<PyObject *>f, args, n, NULL)


cdef object binary(object method, object reflected, object a, object b):
    """An operator of two operands: a's method, or b's reflected one; NotImplemented for what neither takes."""
    cdef PyObject *args[2]
    if method is None:
        return NotImplemented
    if isinstance(a, Tensor):
        args[0], args[1] = <PyObject *>a, <PyObject *>b
    else:
        if reflected is None:
            return NotImplemented
        method = reflected
        args[0], args[1] = <PyObject *>b, <PyObject *>a
    if type(method) is not OpMethod:
        return method(<object>args[0], <object>args[1])
    if exact(<object>args[0]) and exact(<object>args[1]):
        return _vectorcall(<PyObject *>method, args, 2, NULL)
    try:
        return _vectorcall(<PyObject *>method, args, 2, NULL)
    except TypeError:
        if isinstance(b, (Tensor, int, float, complex)) and isinstance(a, (Tensor, int, float, complex)) or brings_function(b):
            raise
        return NotImplemented


# ---- the objects ---------------------------------------------------------------------------------------------------

cdef class OpFunction:
    """A public function over one or more op overloads."""

    def __init__(self, name, ops, *, module="tinygrad_ext", doc=None, owner=None, bint inplace=False):
        self.vectorcall = <void *>_vectorcall
        self.method = isinstance(self, OpMethod)
        self.inplace = inplace
        self.name, self.owner = name, owner
        for key, value in (("__name__", name), ("__module__", module), ("__doc__", doc),
                           ("__qualname__", f"Tensor.{name}" if self.method else name)):
            setattr(self, key, value)
        self.set_ops(ops)

    def set_ops(self, ops):
        """Replace the overloads, tried in this order."""
        self.ops = list(ops)
        self.nops = len(self.ops)
        self.first = <PyObject *>self.ops[0]

    @property
    def overloads(self):
        """The Op objects, in the order in which they are tried."""
        return tuple(self.ops)

    @property
    def __signature__(self):
        return _readers["signature_of"](self)

    def __repr__(self):
        if self.method:
            return f"<method '{self.name}' of 'tinygrad_ext.Tensor' objects>"
        return f"<built-in function {self.name}>"

    def __reduce__(self):
        return _readers["function_by_path"], (getattr(self, "__module__"), getattr(self, "__qualname__"))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


cdef class OpMethod(OpFunction):
    """A Tensor method over one or more op overloads."""

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __objclass__(self):
        return Tensor


def _install():
    cdef OpFunction probe = OpFunction.__new__(OpFunction)
    cdef Py_ssize_t offset = <char *>&probe.vectorcall - <char *><PyObject *>probe
    tgx_enable_vectorcall(OpFunction, offset, False)
    tgx_enable_vectorcall(OpMethod, offset, True)
    tgx_open_type(Tensor)


_install()
