# cython: language_level=3
"""C slots for classes derived from Module, in place of those that Python makes.

A class that has ``__call__`` and ``__getattr__`` written in Python pays for both where they do
nothing: a call goes through an extra frame (about 0.15 µs), and no attribute access can be
specialised by the interpreter (30 instead of 10 ns each). So `speed_up` gives a class

* a ``tp_call`` that tests the two sets of hooks and calls ``forward`` directly, and
* the generic ``tp_getattro``, as the names in question are in the instance ``__dict__`` (see
  `registry`).

Both are taken only if the class has Module's own methods, the second one only with Module's own ``__setattr__`` too, as
another may put plain dicts in the place of the registries, and without properties: one that raises AttributeError stands
aside for ``__getattr__``, so that a buffer may have its name (a `settled` one does not). Assigning ``__call__`` or
``__getattr__`` later, to the class or to a base (a mock, a tracer), makes the interpreter set
its own slots again, so the behaviour always is that of the Python methods.
"""

cdef extern from *:
    """
    static PyObject *tgx_global_live;
    static PyObject *tgx_live_name, *tgx_forward_name, *tgx_slow_name;

    /* Up to this many arguments are handed on without a heap allocation. */
    #define TGX_MANY 6

    static int tgx_no_hooks(PyObject *self) {
        PyObject *live = PyObject_GenericGetAttr(self, tgx_live_name);
        int none;
        if (live == NULL) {
            PyErr_Clear();  /* before Module.__init__(): the Python path reports it */
            return 0;
        }
        none = PyAnySet_Check(live) && PySet_GET_SIZE(live) == 0 && PySet_GET_SIZE(tgx_global_live) == 0;
        Py_DECREF(live);
        return none;
    }

    static PyObject *tgx_call(PyObject *self, PyObject *args, PyObject *kwargs) {
        Py_ssize_t count = PyTuple_GET_SIZE(args), i;
        PyObject *method, *result;
        PyObject *stack[TGX_MANY + 2];
        int none = tgx_no_hooks(self);
        if (none && kwargs == NULL && count <= TGX_MANY) {
            stack[1] = self;  /* stack[0] is left for the callee to use */
            for (i = 0; i < count; i++) stack[i + 2] = PyTuple_GET_ITEM(args, i);
            result = PyObject_VectorcallMethod(
                tgx_forward_name, stack + 1, (size_t)(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
            if (result == NULL) tgx_leave();
            return result;
        }
        method = PyObject_GetAttr(self, none ? tgx_forward_name : tgx_slow_name);
        if (method == NULL) return NULL;
        result = PyObject_Call(method, args, kwargs);
        Py_DECREF(method);
        if (result == NULL) tgx_leave();
        return result;
    }

    /* The interpreter's own slot, which looks up __init__ by the class; exceptions leave it without our frames. */
    static initproc tgx_plain_init;

    static int tgx_init(PyObject *self, PyObject *args, PyObject *kwargs) {
        int bad = tgx_plain_init(self, args, kwargs);
        if (bad) tgx_leave();
        return bad;
    }

    static void tgx_set_init(PyObject *cls, PyObject *base) {
        PyTypeObject *type = (PyTypeObject *)cls;
        if (tgx_plain_init == NULL) tgx_plain_init = ((PyTypeObject *)base)->tp_init;
        if (type->tp_init == tgx_plain_init) type->tp_init = tgx_init;
    }

    static void tgx_set_call(PyObject *cls) { ((PyTypeObject *)cls)->tp_call = tgx_call; }
    static void tgx_set_getattro(PyObject *cls) { ((PyTypeObject *)cls)->tp_getattro = PyObject_GenericGetAttr; }

    /* of a metaclass's classes too, for which Cython's own declaration refuses */
    static void tgx_modified(PyObject *cls) { PyType_Modified((PyTypeObject *)cls); }

    static void tgx_setup(PyObject *global_live) {
        Py_INCREF(global_live);
        tgx_global_live = global_live;
        tgx_live_name = PyUnicode_InternFromString("_live_hooks");
        tgx_forward_name = PyUnicode_InternFromString("forward");
        tgx_slow_name = PyUnicode_InternFromString("_call_impl");
    }
    """
    void tgx_set_call(object)
    void tgx_set_getattro(object)
    void tgx_set_init(object, object)
    void tgx_setup(object)
    void tgx_modified(object)


from .hooks import _global_live
from .registry import settled

tgx_setup(_global_live)


def speed_up(cls, base):
    """Give ``cls`` the C slots for those of the methods that it has from ``base``, which is Module."""
    if cls.__call__ is base.__call__:
        tgx_set_call(cls)
    plain = cls.__getattribute__ is object.__getattribute__ and cls.__setattr__ is base.__setattr__
    plain = plain and not any([isinstance(v, property) and not isinstance(v, settled)
                               for c in cls.__mro__ if c not in base.__mro__ for v in vars(c).values()])
    if plain and cls.__getattr__ is base.__getattr__:
        tgx_set_getattro(cls)
    tgx_set_init(cls, base)
    tgx_modified(cls)
