# cython: language_level=3
"""`len(t)`, `bool(t)`, `float(t)` and their like on plain tensors: modes see them too, and levels those they carry.

Python reaches these through slots of the type. A subclass's slots look the method up by its name and so meet the
protocol; those of Tensor and Parameter are C functions, and get a test of the thread's word in front.
"""
from cpython.object cimport PyObject
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, state
from tinygrad_ext.core.call.mode_stack cimport modes_on
from tinygrad_ext.core.data.tensor cimport Carried, Parameter, Tensor

cdef extern from *:
    """
    typedef PyObject *(*tgx_unary_slot)(PyObject *);
    """
    ctypedef object (*unary "tgx_unary_slot")(object)
    ctypedef int (*inquiry)(PyObject *) except -1
    ctypedef Py_ssize_t (*lenfunc)(PyObject *) except -1
    ctypedef int (*objobjproc)(PyObject *, PyObject *) except -1
    ctypedef struct Numbers "PyNumberMethods":
        inquiry nb_bool
        unary nb_int, nb_float, nb_index
    ctypedef struct Sequences "PySequenceMethods":
        lenfunc sq_length
        objobjproc sq_contains
    ctypedef struct Mappings "PyMappingMethods":
        lenfunc mp_length
    ctypedef struct CType "PyTypeObject":
        Numbers *tp_as_number
        Sequences *tp_as_sequence
        Mappings *tp_as_mapping
        unary tp_repr
    object PyObject_CallOneArg(object f, object a)

cdef dict _methods = {}         # "__len__" -> the method under the protocol
cdef inquiry _bool
cdef unary _int, _float, _index, _repr
cdef lenfunc _len
cdef objobjproc _contains


cdef object _asked(str name, object t):
    return PyObject_CallOneArg(_methods[name], t)


cdef inline bint _unasked(object t) noexcept:
    return not modes_on(state()) and type(t) is not Carried and not state().flags & TGX_LEVELS


cdef int to_bool(PyObject *t) except -1:
    if _unasked(<object>t):
        return _bool(t)
    answer = _asked("__bool__", <object>t)
    if not isinstance(answer, bool):
        raise TypeError(f"__bool__ should return bool, returned {type(answer).__name__}")
    return answer


cdef Py_ssize_t length(PyObject *t) except -1:
    cdef Py_ssize_t n
    if _unasked(<object>t):
        return _len(t)
    n = _asked("__len__", <object>t)
    if n < 0:
        raise ValueError("__len__() should return >= 0")
    return n


cdef int contains(PyObject *t, PyObject *item) except -1:
    return _contains(t, item) if _unasked(<object>t) else bool(_methods["__contains__"](<object>t, <object>item))


cdef object to_int(object t):
    return _int(t) if _unasked(t) else _asked("__int__", t)


cdef object to_float(object t):
    return _float(t) if _unasked(t) else _asked("__float__", t)


cdef object to_index(object t):
    return _index(t) if _unasked(t) else _asked("__index__", t)


cdef object show(object t):
    return _repr(t) if _unasked(t) else _asked("__repr__", t)


def install():
    """Put the test in front of the slots; the methods stand in Tensor already."""
    global _bool, _int, _float, _index, _repr, _len, _contains
    cdef CType *t = <CType *>Tensor
    for name in ("__bool__", "__len__", "__contains__", "__int__", "__float__", "__index__", "__repr__"):
        _methods[name] = vars(Tensor)[name]
    _bool, _int, _float, _index = t.tp_as_number.nb_bool, t.tp_as_number.nb_int, t.tp_as_number.nb_float, t.tp_as_number.nb_index
    _repr, _len, _contains = t.tp_repr, t.tp_as_sequence.sq_length, t.tp_as_sequence.sq_contains
    _cover(t)
    _cover(<CType *>Parameter)
    _cover(<CType *>Carried)


cdef int _cover(CType *t) except -1:
    t.tp_as_number.nb_bool, t.tp_as_number.nb_int = to_bool, to_int
    t.tp_as_number.nb_float, t.tp_as_number.nb_index = to_float, to_index
    t.tp_repr, t.tp_as_sequence.sq_contains = show, contains
    t.tp_as_sequence.sq_length = length
    if t.tp_as_mapping.mp_length != NULL:
        t.tp_as_mapping.mp_length = length
    return 0
