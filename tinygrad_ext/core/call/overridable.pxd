from tinygrad_ext.core.call.callables cimport PublicCallable

cdef class Overridable(PublicCallable):
    cdef object inner
    cdef bint of_class              # the function of a classmethod
    cdef public bint converts       # makes a tensor of data, whose `__torch_function__` is not asked
    cdef readonly str __name__

cdef class OverridableMethod(Overridable):
    pass

cdef class OverridableProperty:
    cdef object inner
    cdef readonly str __name__
    cdef readonly object __objclass__
    cdef object __weakref__
