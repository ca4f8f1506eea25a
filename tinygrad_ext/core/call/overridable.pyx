# cython: language_level=3
"""Public callables over no op record, which take part in the override protocol all the same.

`overridable` wraps a function, OverridableMethod a method of Tensor, OverridableProperty what is read and set as an
attribute. A plain call costs the test of its arguments' types more than the function alone. Methods and attributes are
found by one walk over the class; a list of them by hand, which is the other way, forgets some.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.callables cimport PublicCallable
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, TGX_SKIP_ONE, state, tgx_state
from tinygrad_ext.core.call.elsewhere import own_types
from tinygrad_ext.core.call.levels cimport ask_observers, read_carried, write_carried
from tinygrad_ext.core.call.mode_stack cimport modes_on
from tinygrad_ext.core.call.overloaded cimport is_registered, must_ask, overloaded
from tinygrad_ext.core.call.overrides cimport ask
from tinygrad_ext.core.data.tensor cimport Carried, Tensor, exact
from tinygrad_ext.core.call.unasked import keep_open

cdef extern from "Python.h":
    ctypedef object (*getter)(object descriptor, object instance, object owner)
    ctypedef int (*setter)(PyObject *descriptor, PyObject *instance, PyObject *value) except -1
    ctypedef struct CType "PyTypeObject":
        getter tp_descr_get
        setter tp_descr_set
    CType *Py_TYPE(object o)
    object PyMethod_New(object fn, object instance)
    PyObject *PyTuple_GET_ITEM(PyObject *t, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *t)
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)

cdef extern from "vectorcall.h":
    void tgx_enable_vectorcall(object type, Py_ssize_t offset, bint method)


cdef inline bint _plain(PyObject **args, Py_ssize_t n) noexcept:
    """Whether nothing is switched on and all arguments are plain tensors: the common case, told without a call."""
    cdef Py_ssize_t i
    for i in range(n):
        if not exact(<object>args[i]):
            return False
    return state().flags == 0


cdef list _asked_of(Overridable f, PyObject **args, Py_ssize_t n):
    """Who is asked about a function that converts data: registered handlers, and the tensor whose method it is."""
    return [o for o in overloaded(args, n) if is_registered(o) or (type(f) is OverridableMethod and o is <object>args[0])]


cdef bint _must_ask_of(Overridable f, PyObject **args, Py_ssize_t n) except -1:
    cdef tgx_state *st = state()
    if not must_ask(args, n):
        return False
    return modes_on(st) or st.flags & TGX_SKIP_ONE or len(_asked_of(f, args, n)) > 0


# ---- functions and methods -----------------------------------------------------------------------------------------

cdef object _ask(Overridable f, PyObject **args, Py_ssize_t n, PyObject *kwnames):
    """The answer of an override, or of the level that carries self; NotImplemented where this call is not asked about."""
    cdef tgx_state *st = state()
    cdef Py_ssize_t i, first = 1 if f.of_class else 0, nkw = 0 if kwnames == NULL else PyTuple_GET_SIZE(kwnames)
    if n and type(<object>args[0]) is Carried and (st.below or not modes_on(st)):
        if type(f) is not OverridableMethod:
            return NotImplemented           # a function in Python: what it reads and calls is asked about
        return read_carried(<object>args[0], f.__name__, _by_position(f, args, n, kwnames))
    if st.flags & TGX_SKIP_ONE:
        st.flags &= ~<unsigned int>TGX_SKIP_ONE
        return NotImplemented
    found = _asked_of(f, args, n + nkw) if f.converts else overloaded(args, n + nkw)
    if not found and not modes_on(st):
        return NotImplemented               # carried values only
    positional = tuple([<object>args[i] for i in range(first, n)])
    keywords = {<object>PyTuple_GET_ITEM(kwnames, i): <object>args[n + i] for i in range(nkw)}
    return ask(PyMethod_New(f, <object>args[0]) if first else f, None, found, positional, keywords)


cdef tuple _by_position(Overridable f, PyObject **args, Py_ssize_t n, PyObject *kwnames):
    """What a method is given besides its tensor, each at its place in the method's signature."""
    cdef Py_ssize_t i
    given = [<object>args[i] for i in range(n)]
    if kwnames != NULL:
        from inspect import signature       # lazy, as in decorated.py

        bound = signature(f.inner).bind(*given, **{name: <object>args[n + i] for i, name in enumerate(<tuple>kwnames)})
        bound.apply_defaults()
        given = bound.args
    return tuple(given[1:])


cdef bint _seen(PyObject **args, Py_ssize_t n) noexcept:
    """Whether observers may want to know of a call: levels are on, and it is one of a tensor that none of them carries."""
    return n and state().flags & TGX_LEVELS and isinstance(<object>args[0], Tensor) and type(<object>args[0]) is not Carried


cdef object _vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *kwnames):
    cdef Overridable f = <Overridable>callable
    cdef Py_ssize_t n = nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
    cdef Py_ssize_t nkw = 0 if kwnames == NULL else PyTuple_GET_SIZE(kwnames)
    if not _plain(args, n + nkw):
        if _must_ask_of(f, args, n + nkw) if f.converts else must_ask(args, n + nkw):
            result = _ask(f, args, n, kwnames)
            if result is not NotImplemented:
                return result
        if type(f) is OverridableMethod and _seen(args, n):
            result = ask_observers(<object>args[0], f.__name__, _by_position(f, args, n, kwnames), False)
            if result is not NotImplemented:
                return result
    if type(f) is OverridableMethod and (n == 0 or not isinstance(<object>args[0], Tensor)):
        raise TypeError(f"descriptor '{f.__name__}' for 'tinygrad_ext.Tensor' objects doesn't apply to a "
                        f"'{type(<object>args[0]).__name__ if n else 'missing'}' object")
    return PyObject_Vectorcall(f.inner, args, n, kwnames)


cdef class Overridable(PublicCallable):
    """A public function that asks modes and argument types before it runs."""

    def __init__(self, inner, name=None, *, bint of_class=False, module=None):
        self.vectorcall = <void *>_vectorcall
        self.inner, self.of_class = inner, of_class
        self.__name__ = name or inner.__name__
        method = isinstance(self, OverridableMethod)
        for key, value in (("__wrapped__", inner), ("__doc__", inner.__doc__),
                           ("__module__", module or getattr(inner, "__module__", None) or "tinygrad_ext"),
                           ("__qualname__", f"Tensor.{self.__name__}" if method else inner.__qualname__)):
            setattr(self, key, value)

    def __repr__(self):
        if isinstance(self, OverridableMethod):
            return f"<method '{self.__name__}' of 'tinygrad_ext.Tensor' objects>"
        return f"<function {getattr(self, '__qualname__')}>"


cdef class OverridableMethod(Overridable):
    """A method of Tensor that is no op."""

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __objclass__(self):
        return Tensor


def overridable(function):
    """Decorator: let modes and the types of the arguments carry out calls of this function.

    @overridable
    def double(x):
        return x + x
    """
    return Overridable(function)


def converting(function):
    """Decorator of a function that makes a tensor of data: modes see it, and types with a handler that was registered.

    What `__torch_function__` the data has is not asked, since nothing is done with it as a tensor.
    """
    made = Overridable(function)
    made.converts = True
    return made


def overridable_classmethod(function):
    """Decorator of a classmethod that runs code of its class; asked about as the method bound to that class."""
    made = Overridable(function, of_class=True)
    keep_open(made)
    return classmethod(made)


# ---- attributes ----------------------------------------------------------------------------------------------------

cdef class OverridableProperty:
    """An attribute of Tensor: its `__get__`, `__set__` and `__delete__` are what overrides are asked about."""

    def __init__(self, inner, str name):
        self.inner, self.__name__, self.__objclass__ = inner, name, Tensor

    def __get__(self, instance, owner):
        cdef PyObject *args[1]
        if instance is None:
            return self
        args[0] = <PyObject *>instance
        if not _plain(args, 1):
            if must_ask(args, 1):
                result = _ask_attribute(self, "__get__", instance, (instance,))
                if result is not NotImplemented:
                    return result
            if _seen(args, 1):
                result = ask_observers(instance, self.__name__, (), False)
                if result is not NotImplemented:
                    return result
        return Py_TYPE(self.inner).tp_descr_get(self.inner, instance, owner)

    def __set__(self, instance, value):
        cdef PyObject *args[2]
        args[0], args[1] = <PyObject *>instance, <PyObject *>value
        if must_ask(args, 2) and _ask_attribute(self, "__set__", instance, (instance, value)) is not NotImplemented:
            return
        if _seen(args, 1) and ask_observers(instance, self.__name__, (value,), True) is not NotImplemented:
            return
        Py_TYPE(self.inner).tp_descr_set(<PyObject *>self.inner, args[0], args[1])

    def __delete__(self, instance):
        cdef PyObject *args[1]
        args[0] = <PyObject *>instance
        if must_ask(args, 1) and _ask_attribute(self, "__delete__", instance, (instance,)) is not NotImplemented:
            return
        if _seen(args, 1) and ask_observers(instance, self.__name__, (None,), True) is not NotImplemented:
            return
        Py_TYPE(self.inner).tp_descr_set(<PyObject *>self.inner, args[0], NULL)

    @property
    def __doc__(self):
        return self.inner.__doc__

    @property
    def __qualname__(self):
        return f"Tensor.{self.__name__}"

    def __repr__(self):
        return f"<attribute '{self.__name__}' of 'tinygrad_ext.Tensor' objects>"

    def __reduce__(self):
        return getattr, (Tensor, self.__name__)


cdef object _ask_attribute(OverridableProperty p, str how, object instance, tuple args):
    cdef tgx_state *st = state()
    cdef PyObject *given[2]
    cdef int i
    if st.below or not modes_on(st):
        if how == "__get__" and type(instance) is Carried:
            return read_carried(instance, p.__name__, ())
        for o in args:
            if type(o) is Carried:
                return write_carried(o, instance, p.__name__, args[1] if len(args) > 1 else None)
    if st.flags & TGX_SKIP_ONE:
        st.flags &= ~<unsigned int>TGX_SKIP_ONE
        return NotImplemented
    for i in range(len(args)):
        given[i] = <PyObject *>args[i]
    found = overloaded(given, len(args))
    types = tuple([type(o) for o in found]) or (type(instance),)
    return ask(getattr(p, how), types, found, args, {})


def _install():
    cdef Overridable probe = Overridable.__new__(Overridable)
    cdef Py_ssize_t offset = <char *>&probe.vectorcall - <char *><PyObject *>probe
    tgx_enable_vectorcall(Overridable, offset, False)
    tgx_enable_vectorcall(OverridableMethod, offset, True)
    own_types(Overridable, OverridableMethod, OverridableProperty)


_install()
