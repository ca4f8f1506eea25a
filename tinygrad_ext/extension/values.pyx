# cython: language_level=3
"""Arguments and results on their way between Python and C: every type that a schema has.

An argument is read by its declaration, as an OpForm has it: what could stand for two types (an int for a float) was
converted before. Lists get memory of the call; texts and tensors are those of the arguments themselves.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memset
from tinygrad_ext.core.data.coded cimport is_here
from tinygrad_ext.core.data.dtype cimport dtype, dtype_id, dtype_of
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.types cimport (
    A_ANY, A_BOOL, A_COMPLEX, A_DEVICE, A_DTYPE, A_FLOAT, A_INT, A_SCALAR, A_STR, A_TENSOR,
    F_LIST, ITEMSIZE, TGX_BF16, TGX_BOOL, TGX_C32, TGX_CODED, TGX_NTYPES, int64_t, is_complex, is_integral, is_signed, uint32_t,
)
from tinygrad_ext.extension.public cimport *

from tinygrad_ext.core.data.dtype import (
    channels_last, channels_last_3d, contiguous_format, device, memory_format, preserve_format, strided,
)

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object o, Py_ssize_t *size) except NULL

cdef dict _formats = {o.name: o for o in (channels_last, channels_last_3d, contiguous_format, preserve_format)}


cdef enum:
    BROUGHT = 192           # DLPack's code of the first dtype that a plugin brings, see TGX_BROUGHT in tgx.h


# ---- dtypes --------------------------------------------------------------------------------------------------------

cdef int _codes() except -1:
    """DLPack's codes: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool; those of plugins' dtypes from BROUGHT on."""
    cdef int i, code
    for i in range(TGX_NTYPES):
        code = (6 if i == TGX_BOOL else (0 if is_signed(i) else 1) if is_integral(i) else 5 if is_complex(i)
                else 4 if i == TGX_BF16 else 2)
        dtype_codes[i] = code | (8 * ITEMSIZE[i]) << 8 | 1 << 16
    for i in range(TGX_CODED, TGX_C32):
        dtype_codes[i] = (BROUGHT + i - TGX_CODED) | (8 * ITEMSIZE[i]) << 8 | 1 << 16
    dtype_codes[<int>TGX_C32] = 5 | 32 << 8 | 1 << 16
    return 0


_codes()


cdef int number_of(tgx_dtype code) except -1:
    cdef int i
    for i in range(TGX_MOST):
        if dtype_codes[i] == code and code and (i < TGX_CODED or is_here(i)):
            return i
    raise TypeError(f"the extension asked for a dtype of code {code & 0xff}, {code >> 8 & 0xff} bits and {code >> 16} lanes, which "
                    "is none: take one of TGX_FLOAT32, TGX_INT64 and the like")


# ---- to C ----------------------------------------------------------------------------------------------------------

cdef void *_room(tgx_ctx *c, Py_ssize_t count, size_t size) except NULL:
    cdef void *found = tgx_room(c, <size_t>count * size + 1)
    if found == NULL:
        raise MemoryError(f"{<object>c.who}: no memory for a list of {count}")
    return found


cdef int hold(tgx_ctx *c, object o) except -1:
    """Let o live as long as the call."""
    cdef list kept
    if c.keep == NULL:
        kept = []
        Py_INCREF(kept)
        c.keep = <PyObject *>kept
    (<list>c.keep).append(o)
    return 0


cdef int _text(object o, value_t *v, uint32_t tag) except -1:
    cdef Py_ssize_t size
    v.tag, v.u.s = tag, PyUnicode_AsUTF8AndSize(o, &size)
    v.count = <uint32_t>size
    return 0


cdef int _kept_text(tgx_ctx *c, object o, value_t *v, uint32_t tag) except -1:
    hold(c, o)
    return _text(o, v, tag)


cdef int pack(tgx_ctx *c, ArgSpec *s, PyObject *p, value_t *v) except -1:
    cdef object o
    if p == <PyObject *>None:
        v.tag = V_NONE
        return 0
    o = <object>p
    if s.flags & F_LIST:
        return _pack_list(c, s.kind, o, v)
    if s.kind == A_TENSOR:
        if isinstance(o, Tensor):
            v.tag, v.u.t = V_TENSOR, <tensor_t *>p
            return 0
    elif s.kind == A_INT:
        v.tag, v.u.i = V_INT, o
        return 0
    elif s.kind == A_FLOAT:
        v.tag, v.u.f = V_FLOAT, o
        return 0
    return _pack_one(c, s.kind, o, v)


cdef int _pack_one(tgx_ctx *c, int kind, object o, value_t *v) except -1:
    """A value that is no list, by its kind; what is declared Scalar or Any by its own."""
    if kind == A_COMPLEX and not isinstance(o, complex):
        o = complex(o)
    elif kind == A_BOOL:
        o = bool(o)
    elif kind == A_DTYPE and not isinstance(o, dtype):
        o = dtype_of(dtype_id(o))
    elif kind == A_DEVICE and isinstance(o, str):
        o = device(o)
    elif kind == A_INT:
        o = int(o)
    elif kind == A_SCALAR and not isinstance(o, (bool, int, float, complex)):
        o = o.item()
    return pack_any(c, o, v)


cdef int pack_any(tgx_ctx *c, object o, value_t *v) except -1:
    v.count = 0
    if o is None:
        v.tag = V_NONE
    elif isinstance(o, Tensor):
        v.tag, v.u.t = V_TENSOR, <tensor_t *><PyObject *>o
    elif isinstance(o, bool):
        v.tag, v.u.i = V_BOOL, 1 if o else 0
    elif isinstance(o, int) and -(1 << 63) <= o < 1 << 63:
        v.tag, v.u.i = V_INT, o
    elif isinstance(o, float):
        v.tag, v.u.f = V_FLOAT, o
    elif isinstance(o, complex):
        v.tag, v.u.c[0], v.u.c[1] = V_COMPLEX, o.real, o.imag
    elif isinstance(o, str):
        _text(o, v, V_STRING)
    elif isinstance(o, dtype):
        v.tag, v.u.d = V_DTYPE, dtype_codes[(<dtype>o).id]
    elif isinstance(o, device):
        _kept_text(c, str(o), v, V_DEVICE)
    elif isinstance(o, (list, tuple)):
        _pack_list(c, A_ANY, o, v)
    elif isinstance(o, dict):
        _pack_dict(c, o, v)
    elif isinstance(o, Generator):
        v.tag, v.u.g = V_GENERATOR, <generator_t *><PyObject *>o
    elif isinstance(o, memory_format):
        _kept_text(c, o.name, v, V_FORMAT)
    elif o is strided:
        _text("strided", v, V_LAYOUT)
    else:
        v.tag, v.u.o = V_OBJECT, <void *><PyObject *>o
    return 0


cdef int _pack_list(tgx_ctx *c, int kind, object row, value_t *v) except -1:
    cdef Py_ssize_t i, n = len(row)
    cdef int64_t *whole
    cdef double *real
    cdef tensor_t **tensors
    cdef const char **texts
    cdef value_t *values
    cdef value_t one
    v.count = <uint32_t>n
    if kind == A_TENSOR:
        tensors = <tensor_t **>_room(c, n, sizeof(tensor_t *))
        for i in range(n):
            o = row[i]
            tensors[i] = NULL if o is None else <tensor_t *><PyObject *>o
        v.tag, v.u.ts = V_TENSORS, tensors
    elif kind in (A_INT, A_BOOL) and None not in row:
        whole = <int64_t *>_room(c, n, sizeof(int64_t))
        for i in range(n):
            whole[i] = row[i]
        v.tag, v.u.xs = V_INTS if kind == A_INT else V_BOOLS, whole
    elif kind == A_FLOAT and None not in row:
        real = <double *>_room(c, n, sizeof(double))
        for i in range(n):
            real[i] = row[i]
        v.tag, v.u.fs = V_FLOATS, real
    elif kind == A_COMPLEX and None not in row:
        real = <double *>_room(c, n, 2 * sizeof(double))
        for i in range(n):
            number = complex(row[i])
            real[2 * i], real[2 * i + 1] = number.real, number.imag
        v.tag, v.u.fs = V_COMPLEXES, real
    elif kind == A_STR and None not in row:
        texts = <const char **>_room(c, n, sizeof(char *))
        for i in range(n):
            _text(row[i], &one, V_STRING)
            texts[i] = one.u.s
        v.tag, v.u.ss = V_STRINGS, texts
    else:
        values = <value_t *>_room(c, n, sizeof(value_t))
        for i in range(n):
            if row[i] is None or kind == A_ANY:
                pack_any(c, row[i], &values[i])
            else:
                _pack_one(c, kind, row[i], &values[i])
        v.tag, v.u.vs = V_VALUES, values
    return 0


cdef int _pack_dict(tgx_ctx *c, dict o, value_t *v) except -1:
    cdef value_t *values = <value_t *>_room(c, 2 * len(o), sizeof(value_t))
    cdef Py_ssize_t i = 0
    v.tag, v.count, v.u.vs = V_DICT, <uint32_t>len(o), values
    for key, item in o.items():
        pack_any(c, key, &values[i])
        pack_any(c, item, &values[i + 1])
        i += 2
    return 0


cdef int pack_result(tgx_ctx *c, bint tensors, object o, value_t *v) except -1:
    """A result, borrowed. tensors: it is declared as a list of them."""
    return _pack_list(c, A_TENSOR, o, v) if tensors and o is not None else pack_any(c, o, v)


cdef int give(tgx_ctx *c, object o, value_t *v) except -1:
    """A result of a call: the receiver owns its tensors, all else lives as long as the receiver's own call."""
    cdef uint32_t i
    if isinstance(o, (list, tuple)) and len(o) and all([isinstance(t, Tensor) or t is None for t in o]):
        _pack_list(c, A_TENSOR, o, v)
    else:
        pack_any(c, o, v)
        if v.tag != V_TENSOR:
            hold(c, o)
    if v.tag == V_TENSOR:
        Py_INCREF(o)
    elif v.tag == V_TENSORS:
        for i in range(v.count):
            if v.u.ts[i] != NULL:
                Py_INCREF(<object><PyObject *>v.u.ts[i])
    return 0


# ---- from C --------------------------------------------------------------------------------------------------------

cdef Tensor tensor_of(tensor_t *t, str what):
    if t == NULL or not isinstance(<object><PyObject *>t, Tensor):
        raise TypeError(f"{what}: expected a tensor, but got {'NULL' if t == NULL else 'something else'}")
    return <Tensor><object><PyObject *>t


cdef object read(const value_t *v):
    cdef uint32_t i
    cdef list row
    if v.tag == V_NONE:
        return None
    if v.tag == V_TENSOR:
        return tensor_of(v.u.t, "a value of kind TGX_TENSOR")
    if v.tag == V_INT:
        return v.u.i
    if v.tag == V_FLOAT:
        return v.u.f
    if v.tag == V_BOOL:
        return v.u.i != 0
    if v.tag == V_COMPLEX:
        return complex(v.u.c[0], v.u.c[1])
    if v.tag == V_STRING or v.tag == V_DEVICE or v.tag == V_LAYOUT or v.tag == V_FORMAT:
        return _read_text(v)
    if v.tag == V_DTYPE:
        return dtype_of(number_of(v.u.d))
    if v.tag == V_GENERATOR:
        return None if v.u.g == NULL else <object><PyObject *>v.u.g
    if v.tag == V_OBJECT and v.u.o != NULL:
        return <object><PyObject *>v.u.o
    if v.tag == V_DICT:
        return {read(&v.u.vs[2 * i]): read(&v.u.vs[2 * i + 1]) for i in range(v.count)}
    row = []
    if v.count and v.u.o == NULL:
        raise TypeError(f"a list of {v.count} values is at NULL")
    for i in range(v.count):
        if v.tag == V_TENSORS:
            row.append(None if v.u.ts[i] == NULL else tensor_of(v.u.ts[i], "a list of tensors"))
        elif v.tag == V_INTS:
            row.append(v.u.xs[i])
        elif v.tag == V_BOOLS:
            row.append(v.u.xs[i] != 0)
        elif v.tag == V_FLOATS:
            row.append(v.u.fs[i])
        elif v.tag == V_COMPLEXES:
            row.append(complex(v.u.fs[2 * i], v.u.fs[2 * i + 1]))
        elif v.tag == V_STRINGS:
            row.append((<bytes>v.u.ss[i]).decode())
        elif v.tag == V_VALUES:
            row.append(read(&v.u.vs[i]))
    if not V_TENSORS <= v.tag <= V_OBJECT:
        raise TypeError(f"there is no value of kind {v.tag}; the kinds stand in tgx.h")
    return row


cdef object _read_text(const value_t *v):
    if v.u.s == NULL:
        raise TypeError("a text is at NULL")
    text = (<bytes>v.u.s).decode()
    if v.tag == V_DEVICE:
        return device(text)
    if v.tag == V_LAYOUT:
        return strided
    if v.tag == V_FORMAT:
        return _formats[text]
    return text


cdef bint _is_among(PyObject *o, PyObject **args, int n) noexcept:
    cdef int i
    for i in range(n):
        if args[i] == o:
            return True
    return False


cdef object take(tgx_ctx *c, value_t *v, PyObject **args, int n):
    """What a kernel gave. An argument that it gave back is not its to give."""
    cdef object o
    if v.tag == V_TENSOR:
        if v.u.t == NULL or not isinstance(<object><PyObject *>v.u.t, Tensor):
            tensor_of(v.u.t, f"{<object>c.who}: a result of the kernel")        # says so
        o = <object><PyObject *>v.u.t
        if not _is_among(<PyObject *>o, args, n):
            Py_DECREF(o)
        v.tag = V_NONE
        return o
    o = read(v)
    if v.tag != V_NONE:
        drop(v, args, n)
    return o


cdef int drop(value_t *v, PyObject **args, int n) except -1:
    """Let go of the tensors of a result."""
    cdef uint32_t i
    if v.tag == V_TENSOR:
        if v.u.t != NULL and not _is_among(<PyObject *>v.u.t, args, n):
            Py_DECREF(<object><PyObject *>v.u.t)
    elif v.tag == V_TENSORS and v.u.ts != NULL:
        for i in range(v.count):
            if v.u.ts[i] != NULL and not _is_among(<PyObject *>v.u.ts[i], args, n):
                Py_DECREF(<object><PyObject *>v.u.ts[i])
    memset(v, 0, sizeof(value_t))
    return 0
