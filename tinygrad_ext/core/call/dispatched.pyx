# cython: language_level=3
"""`__torch_dispatch__`: operations handed to modes and to the types among their arguments, below autograd.

A level under all others is there while a mode is on, or while a call runs that brought a tensor whose class has the method.
Composites are opened, so that what is handed over is what they are written in. An operation that needs a gradient is recorded
as usual, with the handler in the place of the kernel (`state.instead`); the rules of its derivative are calls like any other.
Rejected: a device of its own for such tensors, whose row would be the handler. Kernels ask about devices late, after their
shape, views not at all, and a factory has no tensor to tell the device from, which a mode wants to see too.
"""
from contextlib import contextmanager

from cpython.object cimport PyObject, PyTypeObject
from tinygrad_ext.core.call.dispatch cimport (
    COMPOSITE, FUNCTIONAL, INPLACE, MAX_ARGS, OUT, Op, TGX_NO_DISPATCH, any_needs_grad, call_below, named, set_instead, state,
    tgx_state, uint32_t,
)
from tinygrad_ext.core.call.inplace cimport inplace_below
from tinygrad_ext.core.call.levels cimport Observer, OpForm, Operation, form_of, push_level
from tinygrad_ext.core.call.overloaded cimport dispatches
from tinygrad_ext.core.call.subclass cimport any_dispatching, as_class
from tinygrad_ext.core.call.subclass import attributes_of, set_attributes
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, alias, exact, needs_grad
from tinygrad_ext.core.data.types cimport F_DEFAULT, F_KEYWORD, F_LIST

cdef extern from "Python.h":
    PyTypeObject *Py_TYPE(object o)

cdef object _overload = None
cdef dict _instead_of = {}


def set_public(overload, dict instead_of):
    """Hand in overload(op, kind), the public function for an operation, and functions that do in other operations what no handler
    knows by the name that it has here."""
    global _overload
    _overload = overload
    _instead_of.update(instead_of)


# ---- whose turn it is ----------------------------------------------------------------------------------------------

cdef int must_dispatch(PyObject **args, Py_ssize_t n) except -1:
    cdef tgx_state *st = state()
    cdef Py_ssize_t i
    if st.flags & TGX_NO_DISPATCH:
        return 0
    if st.active and isinstance((<list>st.levels)[0], Dispatch) and (<Dispatch>(<list>st.levels)[0]).mode is None:
        return 0                        # they are asked already
    for i in range(n):
        if not exact(<object>args[i]) and _brings(<object>args[i], 2):
            return 1
    return 0


cdef bint _brings(object o, int depth) except -1:
    if type(o) is Carried:
        return any_dispatching() and _stands_for_one(<Carried>o)
    if isinstance(o, Tensor):
        return dispatches(Py_TYPE(o))
    if depth and isinstance(o, (list, tuple)):
        for item in o:
            if _brings(item, depth - 1):
                return True
    return False


cdef bint _stands_for_one(Carried o) except -1:
    """Whether what a level carries has such tensors at the bottom: its rules compute with those."""
    if not hasattr(o.level, "parts"):
        return False
    for part in o.level.parts(o):
        if isinstance(part, Tensor) and not exact(part) and _brings(part, 0):
            return True
    return False


cdef int _find(list found, object o, int depth) except -1:
    """One tensor of each type that has a handler: subclasses before their superclasses, else as they come."""
    cdef Py_ssize_t i
    if isinstance(o, Tensor):
        if exact(o) or not dispatches(Py_TYPE(o)):
            return 0
        for i in range(len(found)):
            if type(found[i]) is type(o):
                return 0
        for i in range(len(found)):
            if issubclass(type(o), type(found[i])):
                found.insert(i, o)
                return 0
        found.append(o)
    elif depth and isinstance(o, (list, tuple)):
        for item in o:
            _find(found, item, depth - 1)
    return 0


cdef object enter_types():
    return Dispatch().__enter__()


cdef int leave_types(object level) except -1:
    level.__exit__(None, None, None)
    return 0


# ---- the level -----------------------------------------------------------------------------------------------------

cdef class Dispatch(Observer):
    """Hands operations to the `__torch_dispatch__` of a mode, or of the types among their arguments.

    mode: whose handler it is; None: the types'.
    """
    cdef readonly object mode
    after_transforms = True

    def __init__(self, mode=None):
        self.mode = mode

    def enter_mode(self):
        """Put the level over those of the modes around, and under all others; returns it."""
        push_level(self, len(_on()))
        return self

    @contextmanager
    def without(self):
        """`with` inside of which the level is off."""
        self.__exit__()
        try:
            yield
        finally:
            self.enter_mode()

    def process(self, operation, args):
        """Hand an operation over; NotImplemented for what is to be opened, or is nobody's business here."""
        cdef OpForm form
        cdef list found = []
        if state().flags & TGX_NO_DISPATCH:
            return NotImplemented
        if not isinstance(operation, OpForm):
            return self.resume(_inside, operation, args)
        form = <OpForm>operation
        if form.composite:
            return NotImplemented
        for o in args:
            _find(found, o, 2)
        if self.mode is None and not found:
            return NotImplemented
        if form.name in _instead_of:
            return self.resume(_instead_of[form.name], *args)
        return self._carry_out(form, found, args)

    cdef object _carry_out(self, OpForm form, list found, tuple args):
        cdef PyObject *row[MAX_ARGS + 1]
        cdef tgx_state *st = state()
        cdef Op op = form.op
        cdef PyObject *outer
        cdef Py_ssize_t i
        for i in range(len(args)):
            row[i] = <PyObject *>args[i]
        if st.no_grad or not any_needs_grad(op, row):
            return self._hand(form, found, args)
        if form.form == OUT:
            raise RuntimeError(f"{op.title}(): functions with out=... arguments don't support automatic differentiation, but one "
                               "of the arguments requires grad.")
        if op.custom is not None or op.kind == COMPOSITE:      # it has a backward, or a way, of its own
            return self.resume(_below, form, args)
        waiting = _Waiting(self, form, found)
        outer = st.instead
        st.instead = <PyObject *>waiting
        try:
            return call_below(op, row) if form.form == FUNCTIONAL else inplace_below(op, row)
        finally:
            st.instead = outer

    cdef object _hand(self, OpForm form, list found, tuple args):
        """The handlers' answer, as the operation returns it."""
        cdef tgx_state *st = state()
        cdef uint32_t below = st.below
        cdef unsigned char no_grad = st.no_grad
        cdef PyObject *outer = st.instead
        cdef tuple types = tuple([type(o) for o in found])
        positional, keywords = _as_called(form, args)
        st.no_grad, st.below, st.instead = 1, 0, NULL
        try:
            result = self._answer(_overload(form.op, form.kind), found, types, positional, keywords)
        finally:
            st.no_grad, st.below, st.instead = no_grad, below, outer
        return _fitted(form, args, result)

    cdef object _answer(self, object func, list found, tuple types, tuple args, dict keywords):
        for handler in [type(o).__torch_dispatch__ for o in found] if self.mode is None else [self.mode.__torch_dispatch__]:
            result = handler(func, types, args, dict(keywords))
            if result is not NotImplemented:
                return result
        who = [repr(self.mode)] if self.mode is not None else [f"{t.__module__}.{t.__qualname__}" for t in types]
        raise TypeError(f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented: "
                        f"{', '.join(who)}")


cdef class _Waiting:
    """What stands in the place of the kernel of an operation that autograd records."""
    cdef Dispatch level
    cdef OpForm form
    cdef list found

    def __init__(self, level, form, found):
        self.level, self.form, self.found = level, form, found


cdef object _instead(Op op, PyObject **args, bint inplace):
    """Runs the handler that waits; see `forward` and `forward_into`."""
    cdef tgx_state *st = state()
    cdef _Waiting waiting = <_Waiting>st.instead
    st.instead = NULL
    given = tuple([<object>args[i] for i in range(op.nargs)])
    result = waiting.level._hand(form_of(op, INPLACE if inplace else FUNCTIONAL), waiting.found, given)
    if inplace:
        return result
    _check_answer(op, result)
    return _own(result, given)


cdef int _check_answer(Op op, object result) except -1:
    """RuntimeError for what is no tensor, or not as many as the operation gives: whoever hangs a history on them asks no more."""
    cdef bint several = op.makes_list or op.nreturns > 1
    if isinstance(result, (tuple, list)) if several else isinstance(result, Tensor):
        if not several or (all([isinstance(r, Tensor) for r in result]) and (op.makes_list or len(result) == op.nreturns)):
            return 0
    wanted = "tensors" if op.makes_list else f"{op.nreturns} tensors" if several else "a tensor"
    raise RuntimeError(f"{op.title}(): a __torch_dispatch__ must return {wanted}, as the operation does, but returned {_told(result)}")


cdef str _told(object result):
    if isinstance(result, (tuple, list)):
        return f"{len(result)} of {sorted({type(r).__name__ for r in result})}"
    return f"'{type(result).__name__}'"


cdef list _on():
    """The levels of this thread's modes and types that are on: they lie lowest."""
    cdef tgx_state *st = state()
    return [] if st.levels == NULL else [o for o in (<list>st.levels)[:st.active] if isinstance(o, Dispatch)]


def mode_levels():
    """The levels of the modes of this thread that are on, the outermost first."""
    return [level for level in _on() if level.mode is not None]


def _inside(Operation operation, args):
    return operation.run(tuple(args))


def _below(OpForm form, tuple args):
    """An operation past this level, what is inside of it seen by it."""
    cdef PyObject *row[MAX_ARGS + 1]
    cdef Py_ssize_t i
    for i in range(len(args)):
        row[i] = <PyObject *>args[i]
    return call_below(form.op, row) if form.form == FUNCTIONAL else inplace_below(form.op, row)


# ---- arguments and results -----------------------------------------------------------------------------------------

cdef tuple _as_called(OpForm form, tuple args):
    """Arguments by position and by keyword, without those that are what the schema says anyway."""
    cdef Op op = form.op
    cdef int i
    cdef list positional = [_as_list(op, i, args[i]) for i in range(op.npositional)]
    cdef dict keywords = {}
    while positional and _is_default(op, <int>len(positional) - 1, positional[len(positional) - 1]):
        positional.pop()
    for i in range(op.npositional, op.nargs):
        if not op.args[i].flags & F_KEYWORD or not _is_default(op, i, args[i]):
            keywords[<object>op.args[i].name] = _as_list(op, i, args[i])
    if form.form == OUT:
        keywords["out"] = args[op.nargs]
    return tuple(positional), keywords


cdef object _as_list(Op op, int i, object value):
    """An argument that the schema calls a list as one."""
    if not op.args[i].flags & F_LIST or value is None:
        return value
    return list(value) if isinstance(value, (list, tuple)) else [value]


cdef bint _is_default(Op op, int i, object value) except -1:
    if not op.args[i].flags & F_DEFAULT:
        return False
    default = <object>op.args[i].default
    if value is default:
        return True
    return type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default


cdef object _fitted(OpForm form, tuple args, object result):
    cdef Op op = form.op
    if form.form == INPLACE:
        return args[0]
    if form.form == OUT:
        return args[op.nargs]
    if op.makes_list and isinstance(result, list):
        return tuple(result)
    if op.returns is not None and type(result) in (tuple, list):
        return tuple.__new__(named(op), result)
    return result


cdef object _own(object result, tuple args):
    """Results that a history may be hung on: tensors of their own, without one."""
    if isinstance(result, (tuple, list)):
        return tuple([_own(r, args) for r in result])
    if isinstance(result, Tensor):
        for o in args:
            if o is result:
                return alike(<Tensor>result)
        if needs_grad(<Tensor>result):
            return alike(<Tensor>result)
    return result


cdef Tensor alike(Tensor t):
    cdef Tensor made = alias(t)
    if exact(t) or not dispatches(Py_TYPE(t)):
        return made
    made = as_class(made, type(t))
    if t.extra is not None and "shown_device" in t.extra:
        made.extra = {"shown_device": t.extra["shown_device"]}
    set_attributes(made, attributes_of(t))
    return made


set_instead(_instead)


# ---- switched off ----------------------------------------------------------------------------------------------------

def set_dispatch(bint on):
    """Switch handlers on or off in this thread; returns what it was."""
    cdef tgx_state *st = state()
    was = not st.flags & TGX_NO_DISPATCH
    if on:
        st.flags &= ~<uint32_t>TGX_NO_DISPATCH
    else:
        st.flags |= TGX_NO_DISPATCH
    return was
