# cython: language_level=3
"""Numbers out of Python objects, for whoever runs a kernel: arguments are bound as they were given.

In the lowest room, so that copies (loops/copy.pyx) need no dispatcher for a number.
"""

from cpython.object cimport PyObject
from tinygrad_ext.core.data.tensor cimport Tensor
from tinygrad_ext.core.data.types cimport TGX_ABOVE, int64_t, tgx_scalar, uint64_t


cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(object t, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(object t)


cdef int64_t as_int(PyObject *o) except? -9223372036854775807:
    cdef object v = <object>o
    if isinstance(v, Tensor):
        v = (<Tensor>v)._only_element()
    return v


cdef double as_float(PyObject *o) except? -1e308:
    return <object>o


cdef int as_ints(PyObject *o, int64_t *into, int room, int want) except -1:
    """Ints of a list, or one int repeated `want` times; how many there are."""
    cdef object v = <object>o
    cdef Py_ssize_t i
    cdef int n
    if isinstance(v, tuple):            # a Size too, whose own [] makes Sizes of slices
        if PyTuple_GET_SIZE(v) > room:
            raise RuntimeError(f"expected at most {room} numbers, got {len(v)}")
        for i in range(PyTuple_GET_SIZE(v)):
            into[i] = as_int(PyTuple_GET_ITEM(v, i))
        return <int>PyTuple_GET_SIZE(v)
    if isinstance(v, list):
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


cdef tgx_scalar as_wide_scalar(object o) except *:
    """The same for what takes every number of uint64: a float that int64 does not hold is marked as such too."""
    cdef tgx_scalar s
    if not (isinstance(o, float) and 9223372036854775808.0 <= o < 18446744073709551616.0):
        return as_scalar(o)
    s.f, s.im, s.i, s.given = <double>o, 0, <int64_t><uint64_t>o, TGX_ABOVE
    return s


cdef tgx_scalar as_scalar(object o) except *:
    """A Python number, NumPy scalar or 0-d tensor for a loop. An integer that uint64 alone holds is marked as such."""
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
            if not 0 < o <= 0xffffffffffffffff:
                raise OverflowError(f"int too big to convert: {o} is beyond the numbers of uint64 and int64; use a float") from None
            s.f, s.i, s.given = <double>o, <int64_t><uint64_t>o, TGX_ABOVE
            return s
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
