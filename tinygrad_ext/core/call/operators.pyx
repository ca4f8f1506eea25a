# cython: language_level=3
"""Operators of Tensor: C slots over the methods that records name with operator=.

Names put into a static type's dict do not reach its slots, so the slots are set here, once, for Tensor and Parameter,
and look the method up in a table that `bind` fills. A subclass keeps these slots unless it defines the operator.
Python's own way, generic slots for every subclass, is rejected: `tensor - subclass` would arrive as the subclass's
`__rsub__`.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from tinygrad_ext.core.call.callables cimport OpMethod, binary, call_packet
from tinygrad_ext.core.data.dtype cimport dtype_of
from tinygrad_ext.core.data.tensor cimport Carried, Parameter, Tensor, exact
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.types cimport is_integral

from tinygrad_ext.core.call.callables import turn_to
from tinygrad_ext.core.call.unasked import _disabled_torch_function_impl

cdef extern from *:
    """
    typedef PyObject *(*tgx_binary)(PyObject *, PyObject *);
    typedef PyObject *(*tgx_unary)(PyObject *);
    #define TGX_NUM(t) (((PyTypeObject *)(t))->tp_as_number)
    static int tgx_set_in_dict(PyObject *type, PyObject *name, PyObject *value) {
    #if PY_VERSION_HEX >= 0x030C0000
        PyObject *dict = PyType_GetDict((PyTypeObject *)type);
        int code = PyDict_SetItem(dict, name, value);
        Py_DECREF(dict);
    #else
        int code = PyDict_SetItem(((PyTypeObject *)type)->tp_dict, name, value);
    #endif
        PyType_Modified((PyTypeObject *)type);
        return code;
    }
    """
    ctypedef object (*binaryfunc "tgx_binary")(object, object)
    ctypedef object (*ternaryfunc)(object, object, object)
    ctypedef object (*unaryfunc "tgx_unary")(object)
    ctypedef struct PyNumberMethods:
        binaryfunc nb_add, nb_subtract, nb_multiply, nb_remainder, nb_true_divide, nb_floor_divide
        binaryfunc nb_and, nb_or, nb_xor, nb_lshift, nb_rshift, nb_matrix_multiply
        binaryfunc nb_inplace_add, nb_inplace_subtract, nb_inplace_multiply, nb_inplace_remainder
        binaryfunc nb_inplace_true_divide, nb_inplace_floor_divide
        binaryfunc nb_inplace_and, nb_inplace_or, nb_inplace_xor, nb_inplace_lshift, nb_inplace_rshift
        ternaryfunc nb_power, nb_inplace_power
        unaryfunc nb_negative, nb_positive, nb_absolute, nb_invert
    int tgx_set_in_dict(object type, object name, object value) except -1
    ctypedef object (*richcmpfunc)(object, object, int)
    ctypedef int (*objobjargproc)(PyObject *, PyObject *, PyObject *) except -1
    ctypedef struct PyMappingMethods:
        binaryfunc mp_subscript
        objobjargproc mp_ass_subscript
    ctypedef struct CType "PyTypeObject":
        void *tp_new
        PyNumberMethods *tp_as_number
        PyMappingMethods *tp_as_mapping
        richcmpfunc tp_richcompare

cdef extern from "Python.h":
    object PyMethod_New(object fn, object instance)

cdef extern from "inherit_slots.h":
    int tgx_inherit_slots(object base, object cls) except -1

cdef PyObject *_forward[32]             # own references, which stay; NULL: no method
cdef PyObject *_reflected[32]
cdef PyObject *_inplace[32]
ROOTS = ["add", "sub", "mul", "mod", "truediv", "floordiv", "and", "or", "xor", "lshift", "rshift", "matmul", "pow",
         "neg", "pos", "abs", "invert", "lt", "le", "eq", "ne", "gt", "ge"]
cdef enum:
    LESS = 17                           # of "lt": the others follow as Python counts them
UNARY = ("neg", "pos", "abs", "invert")
COMMUTES = ("add", "mul", "and", "or", "xor")
MIRRORED = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "eq", "gt": "lt", "ge": "le"}     # whoever defines == has !=


cdef frozenset _TOLD = frozenset(
    ("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__", "__signature__", "__text_signature__"))


cdef class Declining:
    """What `tensor.__add__` binds: NotImplemented for a foreign operand, as Python's protocol asks. Of the class it is the method.

    The operators themselves do not come here: their slots ask before they call.
    """
    cdef readonly object method

    def __init__(self, method):
        self.method = method

    def __get__(self, instance, owner):
        return self.method if instance is None else PyMethod_New(self, instance)

    def __call__(self, *args, **kwargs):
        try:
            return self.method(*args, **kwargs)
        except TypeError:
            if len(args) != 2 or isinstance(args[1], (Tensor, int, float, complex)):
                raise
            return NotImplemented

    def __getattr__(self, name):
        if name.startswith("__") and name not in _TOLD:         # __setstate__ and others are not the method's business
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.method, name)

    def __reduce__(self):
        return Declining, (self.method,)


cdef PyObject *_held(object method):
    Py_INCREF(method)
    return <PyObject *>method


def bind(root, method, inplace, reflected):
    """Let an operator call a method, and `reflected` from its right side where it commutes; else see `bind_reflected`."""
    if root in ("getitem", "setitem"):
        return _bind_subscript(root, method)
    k = ROOTS.index(root)
    if _forward[k] != NULL:
        return
    _forward[k] = _held(method)
    _inplace[k] = NULL if inplace is None else _held(inplace)
    setattr_type(f"__{root}__", method if root in UNARY else Declining(method))
    for each in (method, inplace):
        if each is not None and root not in UNARY:
            turn_to(each, f"__{MIRRORED[root]}__" if root in MIRRORED else f"__r{root}__")
    if root in COMMUTES:
        bind_reflected(root, reflected)
    if inplace is not None and root not in UNARY and root not in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr_type(f"__i{root}__", Declining(inplace))


def bind_reflected(root, method):
    """The method that b.__r<root>__(a) calls."""
    k = ROOTS.index(root)
    if _reflected[k] != NULL:
        Py_DECREF(<object>_reflected[k])
    _reflected[k] = _held(method)
    setattr_type(f"__r{root}__", Declining(method))


def show(name, method):
    """Put a dunder method where it can be seen; setattr would also put Python's slow slot over ours."""
    setattr_type(name, method)


cdef int setattr_type(str name, object method) except -1:
    """Show a method under its dunder name without disturbing the C slots."""
    tgx_set_in_dict(Tensor, name, method)
    return 0


cdef inline object _two(int k, object a, object b):
    return binary(_forward[k], _reflected[k], a, b)


cdef object _two_inplace(int k, object a, object b):
    return binary(_inplace[k], NULL, a, b)


cdef object _one(int k, object a):
    cdef PyObject *args[1]
    method = <object>_forward[k]
    if type(method) is not OpMethod:
        return method(a)
    args[0] = <PyObject *>a
    return call_packet(<OpMethod>method, args, 1)


cdef object add(object a, object b): return _two(0, a, b)
cdef object sub(object a, object b): return _two(1, a, b)
cdef object mul(object a, object b): return _two(2, a, b)
cdef object mod(object a, object b): return _two(3, a, b)
cdef object truediv(object a, object b): return _two(4, a, b)
cdef object floordiv(object a, object b): return _two(5, a, b)
cdef object and_(object a, object b): return _two(6, a, b)
cdef object or_(object a, object b): return _two(7, a, b)
cdef object xor(object a, object b): return _two(8, a, b)
cdef object lshift(object a, object b): return _two(9, a, b)
cdef object rshift(object a, object b): return _two(10, a, b)
cdef object matmul(object a, object b): return _two(11, a, b)
cdef object power(object a, object b, object modulus): return _two(12, a, b) if modulus is None else NotImplemented
cdef object iadd(object a, object b): return _two_inplace(0, a, b)
cdef object isub(object a, object b): return _two_inplace(1, a, b)
cdef object imul(object a, object b): return _two_inplace(2, a, b)
cdef object imod(object a, object b): return _two_inplace(3, a, b)
cdef object itruediv(object a, object b): return _two_inplace(4, a, b)
cdef object ifloordiv(object a, object b): return _two_inplace(5, a, b)
cdef object iand(object a, object b): return _two_inplace(6, a, b)
cdef object ior(object a, object b): return _two_inplace(7, a, b)
cdef object ixor(object a, object b): return _two_inplace(8, a, b)
cdef object ilshift(object a, object b): return _two_inplace(9, a, b)
cdef object irshift(object a, object b): return _two_inplace(10, a, b)
cdef object ipower(object a, object b, object modulus): return _two_inplace(12, a, b)
cdef object neg(object a): return _one(13, a)
cdef object pos(object a): return _one(14, a)
cdef object abs_(object a): return _one(15, a)

cdef object invert(object a):
    try:
        return _one(16, a)
    except NotImplementedError:
        if isinstance(a, Tensor) and not is_integral((<Tensor>a).tid):
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors, not on "
                            f"{dtype_of((<Tensor>a).tid)}") from None
        raise


cdef object compare(object a, object b, int which):
    if b is None and _forward[LESS + which] != NULL and (which == 3 or (which == 2 and exact(a))):
        return which == 3
    return binary(_forward[LESS + which], NULL, a, b)


# ---- subscripts

cdef OpMethod _getitem, _setitem


def _bind_subscript(root, method):
    global _getitem, _setitem
    if root == "getitem":
        _getitem = method
        for t in (Tensor, Parameter, Carried):
            (<CType *>t).tp_as_mapping.mp_subscript = subscript
    else:
        _setitem = method
        for t in (Tensor, Parameter, Carried):
            (<CType *>t).tp_as_mapping.mp_ass_subscript = assign_subscript


cdef object subscript(object a, object index):
    cdef PyObject *args[2]
    args[0], args[1] = <PyObject *>a, <PyObject *>index
    return call_packet(_getitem, args, 2)


cdef int assign_subscript(PyObject *a, PyObject *index, PyObject *value) except -1:
    cdef PyObject *args[3]
    if value == NULL:
        raise TypeError("Tensor does not support deleting items")
    args[0], args[1], args[2] = a, index, value
    call_packet(_setitem, args, 3)
    return 0


cdef _install(CType *t):
    cdef PyNumberMethods *n = t.tp_as_number
    n.nb_add, n.nb_subtract, n.nb_multiply, n.nb_remainder = add, sub, mul, mod
    n.nb_true_divide, n.nb_floor_divide = truediv, floordiv
    n.nb_and, n.nb_or, n.nb_xor, n.nb_lshift, n.nb_rshift = and_, or_, xor, lshift, rshift
    n.nb_matrix_multiply, n.nb_power = matmul, power
    n.nb_inplace_add, n.nb_inplace_subtract, n.nb_inplace_multiply, n.nb_inplace_remainder = iadd, isub, imul, imod
    n.nb_inplace_true_divide, n.nb_inplace_floor_divide = itruediv, ifloordiv
    n.nb_inplace_and, n.nb_inplace_or, n.nb_inplace_xor = iand, ior, ixor
    n.nb_inplace_lshift, n.nb_inplace_rshift, n.nb_inplace_power = ilshift, irshift, ipower
    n.nb_negative, n.nb_positive, n.nb_absolute, n.nb_invert = neg, pos, abs_, invert
    t.tp_richcompare = compare


_install(<CType *>Tensor)
_install(<CType *>Parameter)
_install(<CType *>Carried)


cdef ternaryfunc _make_parameter = <ternaryfunc>(<CType *>Parameter).tp_new


def _new_parameter(*args, **kwargs):
    """`Parameter.__new__`, as a function: Python refuses to go back to a slot's own wrapper after something else stood there."""
    if not args:
        raise TypeError("Parameter.__new__(): not enough arguments: the class comes first, as in Parameter.__new__(Parameter, data)")
    cls = args[0]
    if not isinstance(cls, type):
        raise TypeError(f"Parameter.__new__(X): X is not a type object ({type(cls).__name__}); the class comes first")
    if not issubclass(cls, Parameter):
        raise TypeError(f"Parameter.__new__({cls.__name__}): {cls.__name__} is not a subtype of Parameter; name one")
    made = _make_parameter(cls, args[1:], kwargs)
    if cls.__new__ is not _new_parameter or cls.__init__ is not Parameter.__init__:     # else __init__ does it
        data = args[1] if len(args) > 1 else kwargs.get("data")
        wanted = args[2] if len(args) > 2 else kwargs.get("requires_grad", True)
        if isinstance(data, Tensor) and isinstance(wanted, bool):
            slot("fill_parameter")(made, data, wanted)
    return made


_new_parameter.__name__ = "__new__"
tgx_set_in_dict(Parameter, "__new__", staticmethod(_new_parameter))


def inherit(cls, **kwargs):
    """`Tensor.__init_subclass__`: the subclass keeps these slots for the operators that it does not define."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    own = cls.__mro__[:cls.__mro__.index(Tensor)]
    if "__torch_dispatch__" in vars(cls) and not any(["__torch_function__" in vars(c) for c in own]):
        cls.__torch_function__ = _disabled_torch_function_impl      # what sees every operation need not see every call
    tgx_inherit_slots(Tensor, cls)
