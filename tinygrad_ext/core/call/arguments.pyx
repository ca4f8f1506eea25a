# cython: language_level=3
"""One argument parser, driven by schemas.

`bind` tries one schema and says yes or no without building an error; `explain_failure` (arguments_refusal.pxi) runs only
when all schemas of a name have refused, and words the TypeError as PyTorch does. Arguments stay Python objects:
whoever runs the kernel reads those it needs (of kernels in C, kernel_arguments.pxi). Rejected: numbers taken out of them
while binding, which gains nothing measurable, since most arguments are tensors, and would need a calling convention for each
kind of kernel, plugins' and Python's too.
"""
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_Check
from cpython.float cimport PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport PyLong_Check, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.slice cimport PySlice_Check
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_Check
from tinygrad_ext.core.call.dispatch cimport ArgSpec
from tinygrad_ext.core.data.dtype cimport DTYPES, device, dtype, dtype_id, is_row
from tinygrad_ext.core.call.elsewhere cimport class_name, how_to_convert
from tinygrad_ext.core.call.overloaded cimport INDEX_DEPTH, brings_function, holds_overloaded, is_registered
from tinygrad_ext.core.data.tensor cimport Tensor, exact, needs_grad
from tinygrad_ext.core.data.table import ARGUMENT_KINDS
from tinygrad_ext.core.data.types cimport (
    A_ANY, A_BOOL, A_COMPLEX, A_DEVICE, A_DICT, A_DTYPE, A_FLOAT, A_FORMAT, A_GENERATOR, A_INT, A_LAYOUT, A_SCALAR,
    A_STR, A_TENSOR, F_DEFAULT, F_ELEM_OPTIONAL, F_KEYWORD, F_LIST, F_NESTED, F_NUMBER, F_OPTIONAL, F_VARARGS, is_integer,
)

from tinygrad_ext.core.data.dtype import refuse_number, strided

cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(PyObject *t, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *t)
    int PyUnicode_Compare(PyObject *a, PyObject *b) except? -1
    int PyIndex_Check(PyObject *o)
    PyObject *PySequence_Fast_GET_ITEM(PyObject *o, Py_ssize_t i)

cdef dict _other_names = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2", "self": "x",
                          "dim0": "axis0", "dim1": "axis1", "split_size": "split_size_or_sections",
                          "dims": "axes"}
OTHER_NAMES = _other_names
cdef tuple _FIRST_NAMES = ("input", "a", "x1")     # of an argument called self or input


# ---- one value against one spec ------------------------------------------------------------------------------------

cdef inline bint _is_int(object o, int listed):
    """Whether o is an int; among those of a list, as sizes are, a tensor of one has dimensions if it likes."""
    if PyLong_CheckExact(o):
        return True
    if PyBool_Check(o) or PyFloat_Check(o) or o is None:
        return False
    if isinstance(o, Tensor):
        return (<Tensor>o).count == 1 and (listed or (<Tensor>o).rank == 0) and is_integer((<Tensor>o).tid)
    if PyLong_Check(o):
        return True
    if not PyIndex_Check(<PyObject *>o) or type(o).__name__ == "bool":
        return False
    numbers = getattr(o, "dtype", None)     # each array of NumPy's has the method, those of one integer answer it
    return numbers is None or (getattr(o, "ndim", 0) == 0 and getattr(numbers, "kind", "i") in ("i", "u"))


cdef inline bint _is_number(object o):
    if PyFloat_Check(o) or PyLong_Check(o) or PyComplex_Check(o):
        return True
    if isinstance(o, Tensor):
        return (<Tensor>o).rank == 0 and not needs_grad(<Tensor>o)
    # NumPy's scalars answer __float__ or __complex__ and have a dtype, but no length; texts and dates among them do too
    return (
        hasattr(o, "dtype") and (hasattr(o, "__float__") or hasattr(o, "__complex__")) and getattr(o, "ndim", 1) == 0
        and getattr(o.dtype, "kind", "") not in ("U", "S", "O", "M", "m") and getattr(o.dtype, "num", 0) != 20    # 20: bytes
    )


cdef int _refuse_layout(object o) except -1:
    if repr(o) != "torch.strided":
        raise NotImplementedError(f"argument 'layout' must be torch.strided, not {o!r}: what is made here is strided. "
                                  "sparse_coo_tensor(indices, values, size) makes a sparse tensor, to_sparse() turns one into it.")
    return 1


cdef int _accepts_one(int kind, int flags, object o) except -1:
    """0 no, 1 yes, 2 yes and it brings an override."""
    if kind == A_TENSOR:
        if exact(o):
            return 1
        if flags & F_NUMBER and not isinstance(o, Tensor) and _is_number(o):
            return 1
        if brings_function(o):
            return 2
        return isinstance(o, Tensor)
    if kind == A_INT:
        return _is_int(o, flags & F_LIST)
    if kind == A_BOOL:
        return PyBool_Check(o) or type(o).__name__ in ("bool_", "bool")
    if kind == A_SCALAR or kind == A_COMPLEX:
        return _counting(o, _is_number(o))
    if kind == A_FLOAT:
        return PyFloat_Check(o) or PyLong_Check(o) or (not PyComplex_Check(o) and _is_number(o))
    if kind == A_STR:
        return PyUnicode_Check(o)
    if kind == A_DTYPE:
        return type(o) is dtype or o is float or o is int or o is bool or o is complex
    if kind == A_DEVICE:
        return PyUnicode_Check(o) or type(o) is device or (type(o) is int and refuse_number(o))
    if kind == A_DICT:
        return isinstance(o, dict)
    if kind == A_LAYOUT:
        return type(o).__name__ == "layout" and (o is strided or _refuse_layout(o))
    if kind == A_FORMAT:
        return type(o).__name__ == "memory_format"
    if kind == A_GENERATOR:
        return type(o).__name__ == "Generator"
    return _accepts_any(flags, o)


cdef inline int _counting(object o, int got) except -1:
    """A subclass of Tensor that stands for a number is an operand all the same."""
    if PyLong_CheckExact(o) or PyFloat_CheckExact(o) or exact(o):
        return got
    return 2 if got == 1 and isinstance(o, Tensor) and brings_function(o) else got


cdef int _accepts_any(int flags, object o) except -1:
    """An index or other free value counts as an operand."""
    if PyLong_CheckExact(o) or PySlice_Check(o) or o is Ellipsis or exact(o):
        return 1
    return 2 if brings_function(o) or (flags & F_NESTED and holds_overloaded(o, INDEX_DEPTH)) else 1


cdef bint _all_ints(PyObject *row) noexcept:
    """Whether the items of a tuple are nothing but ints, as those of sizes are."""
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(row)):
        if not PyLong_CheckExact(<object>PyTuple_GET_ITEM(row, i)):
            return False
    return True


cdef int _accepts(ArgSpec *s, PyObject *p) except -1:
    cdef object o
    cdef int got, all_of = 1
    if p == <PyObject *>None:
        return 1 if s.flags & F_OPTIONAL or s.kind == A_ANY else 0
    o = <object>p
    if not s.flags & F_LIST:
        return _accepts_one(s.kind, s.flags, o)
    if s.kind == A_INT and is_row(o) and _all_ints(p):
        return 1
    if isinstance(o, (list, tuple)):
        for item in o:
            if item is None and s.flags & F_ELEM_OPTIONAL:
                continue
            got = _accepts_one(s.kind, s.flags & (F_NUMBER | F_LIST), item)
            if s.kind == A_INT or s.kind == A_FLOAT:
                got = _counting(item, got)
            if got == 0:
                return 0
            if got == 2:
                all_of = 2
        return all_of
    if s.size > 0:
        return _accepts_one(s.kind, s.flags, o)       # a lone value stands for `size` equal ones
    if s.kind == A_TENSOR:
        return 2 if not isinstance(o, Tensor) and brings_function(o) else 0
    return 0


# ---- binding -------------------------------------------------------------------------------------------------------

cdef int _place_of(Op op, PyObject *name, bint method) except -2:
    """Number of the argument called `name`; nargs for `out`; -1 when there is none."""
    cdef int i
    for i in range(op.nargs):
        if op.args[i].name == name:
            return i
    for i in range(op.nargs):
        if PyUnicode_Compare(op.args[i].name, name) == 0:
            return i
    text = <object>name
    if text == "out":
        return op.nargs
    for i in range(op.nargs):
        if _other_names.get(<object>op.args[i].name) == text:
            return i
    if text in _FIRST_NAMES and op.nargs and <object>op.args[0].name in ("self", "input"):
        return 0
    for i in range(op.nargs if text == "input" else 0):     # where(condition, input, other)
        if <object>op.args[i].name == "self":
            return i
    return -1


cdef bint bind(Op op, PyObject **given, Py_ssize_t n, PyObject *kwnames, bint method, Bound *b) except -1:
    """Fill b.args from a vectorcall's arguments. False when this schema does not fit."""
    b.out = NULL
    b.overloaded = False
    b.owned = b.packed = NULL
    return _bind_all(op, given, n, kwnames, method, b)


cdef bint _bind_all(Op op, PyObject **given, Py_ssize_t n, PyObject *kwnames, bint method, Bound *b) except -1:
    cdef Py_ssize_t i
    cdef int got, at
    cdef ArgSpec *s
    if n > op.npositional:
        # view(2, 4), permute(0, 2, 1), zeros(2, 3): trailing ints are one list; so are the tensors of meshgrid(a, b)
        at = op.npositional - 1
        if at < 0:
            return False
        s = &op.args[at]
        if not _packs(s) or (at > 0 and not method and op.ntensors == 0):
            return False
        return _bind_varargs(op, given, n, kwnames, method, b, at)
    if n == 0 and op.npositional == 1 and op.args[0].flags & F_VARARGS and op.args[0].kind == A_TENSOR:
        if _bind_varargs(op, given, 0, kwnames, method, b, 0):      # meshgrid(): of no tensors
            return True
    for i in range(n):
        s = &op.args[i]
        if s.single == A_TENSOR and exact(<object>given[i]):
            b.args[i] = given[i]
            continue
        if s.kind == A_INT and PyLong_CheckExact(<object>given[i]) and (s.size > 0 or not s.flags & F_LIST):
            b.args[i] = given[i]
            continue
        got = 1 if given[i] == b.packed else _accepts(s, given[i])
        if got == 0:
            if i == op.npositional - 1 and i == n - 1 and _packs(s) and s.size <= 0:
                if _accepts_one(s.kind, s.flags, <object>given[i]):
                    return _bind_varargs(op, given, n, kwnames, method, b, <int>i)
            return False
        if got == 2 and _counts(op, s, given[i]):
            b.overloaded = True
        b.args[i] = _as_dtype(given[i]) if s.kind == A_DTYPE else given[i]
    for i in range(n, op.nargs):
        b.args[i] = NULL
    return _bind_keywords(op, given, n, kwnames, method, b)


cdef PyObject *_as_dtype(PyObject *p) except NULL:
    """What `dtype=float` stands for."""
    return DTYPES[dtype_id(<object>p)] if isinstance(<object>p, type) else p


cdef bint _counts(Op op, ArgSpec *s, PyObject *p) except -1:
    """Whether a value with an override makes the call ask it: the data of tensor() is converted, unless a handler is for it."""
    return op.ntensors > 0 or s.kind != A_ANY or is_registered(<object>p)


cdef int check_row(Op op, PyObject **args) except -1:
    cdef int i
    for i in range(op.nargs):
        if not _accepts(&op.args[i], args[i]):
            raise TypeError(f"{op.name}: argument '{<object>op.args[i].name}' must be {_type_text(&op.args[i])}, not "
                            f"{_type_name(<object>args[i])}; a level passed it on")
    return 0


cdef inline bint _packs(ArgSpec *s) noexcept:
    """Whether trailing positional arguments may be the elements of this one."""
    return s.flags & F_LIST and (s.kind == A_INT or s.flags & F_VARARGS)


cdef bint _bind_varargs(Op op, PyObject **given, Py_ssize_t n, PyObject *kwnames, bint method, Bound *b, int at) except -1:
    cdef PyObject *packed[MAX_ARGS]
    cdef Py_ssize_t i, nkw = 0 if kwnames == NULL else PyTuple_GET_SIZE(kwnames)
    cdef bint fits, ints = op.args[at].kind == A_INT
    for i in range(at, n):
        if ints and PyLong_CheckExact(<object>given[i]):
            continue
        ints = False
        if not _accepts_one(op.args[at].kind, op.args[at].flags, <object>given[i]):
            return False
    if at + 1 + nkw > MAX_ARGS:
        return False
    rest = PyTuple_New(n - at)
    for i in range(at, n):
        Py_INCREF(<object>given[i])
        PyTuple_SET_ITEM(rest, i - at, <object>given[i])
    for i in range(at):
        packed[i] = given[i]
    packed[at] = <PyObject *>rest
    if ints:
        b.packed = packed[at]
    for i in range(nkw):
        packed[at + 1 + i] = given[n + i]
    fits = _bind_all(op, packed, at + 1, kwnames, method, b)
    if fits:
        Py_INCREF(rest)
        b.owned = <PyObject *>rest
    return fits


cdef bint _bind_keywords(Op op, PyObject **given, Py_ssize_t n, PyObject *kwnames, bint method, Bound *b) except -1:
    cdef Py_ssize_t i
    cdef int at, got
    cdef ArgSpec *s
    if kwnames != NULL:
        for i in range(PyTuple_GET_SIZE(kwnames)):
            at = _place_of(op, PyTuple_GET_ITEM(kwnames, i), method)
            if at < 0:
                return False
            if at == op.nargs:
                if method or not _accepts_out(op, given[n + i], b):
                    return False
                continue
            if b.args[at] != NULL:
                return False
            got = _accepts(&op.args[at], given[n + i])
            if got == 0:
                return False
            if got == 2 and _counts(op, &op.args[at], given[n + i]):
                b.overloaded = True
            b.args[at] = _as_dtype(given[n + i]) if op.args[at].kind == A_DTYPE else given[n + i]
    for i in range(n, op.nargs):
        if b.args[i] == NULL:
            s = &op.args[i]
            if not s.flags & F_DEFAULT:
                return False
            b.args[i] = s.default
    return not op.one_tensor or not (_is_plain(b.args[0]) and _is_plain(b.args[1]))


cdef inline bint _is_plain(PyObject *p) except -1:
    """Whether an operand is a number, not a tensor or something that overrides."""
    return not isinstance(<object>p, Tensor) and not brings_function(<object>p)


cdef bint _accepts_out(Op op, PyObject *p, Bound *b) except -1:
    cdef object o = <object>p
    if not op.has_out:
        return False
    if o is None:
        return True
    for item in (o if isinstance(o, (tuple, list)) else (o,)):
        if not isinstance(item, Tensor) and not brings_function(item):
            return False
        if not exact(item) and brings_function(item):
            b.overloaded = True
    if isinstance(o, (tuple, list)) != (op.nreturns > 1 or op.makes_list) or (op.nreturns > 1 and len(o) != op.nreturns):
        return False
    b.out = p
    return True


include "arguments_refusal.pxi"
