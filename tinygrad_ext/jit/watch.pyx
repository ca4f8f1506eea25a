# cython: language_level=3
"""What a program can reach, and whether it is as it was.

A Watch holds dicts with what stood in them. CPython counts the changes of each dict, so the usual answer costs one
comparison a dict; where the count differs the entries are compared, because others may have been set (a loop at the
top of a script sets its globals at each turn). All dicts draw their counts from one counter, so a dict of our own that
is changed at each look tells whether any was changed since the last: in a loop of steps none is. Rejected: counters in
Module and Optimizer, which every way to change one would have to advance, `__dict__` included; a key of everything for a
table, which costs more than the plan.
"""
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

from types import CellType

cdef extern from *:
    """
    /* Differs after each change of a dict, in the versions of CPython that count; 0 in the others. */
    static inline uint64_t tgx_dict_changes(PyObject *dict) {
    #if PY_VERSION_HEX < 0x030E0000 && !defined(PYPY_VERSION)
        _Pragma("GCC diagnostic push")
        _Pragma("GCC diagnostic ignored \\"-Wdeprecated-declarations\\"")
        return ((PyDictObject *)dict)->ma_version_tag;
        _Pragma("GCC diagnostic pop")
    #else
        return 0;
    #endif
    }
    #ifdef Py_GIL_DISABLED      /* each thread draws from numbers of its own */
    #define TGX_ONE_COUNTER 0
    #else
    #define TGX_ONE_COUNTER 1
    #endif
    """
    uint64_t tgx_dict_changes(PyObject *dict) nogil
    bint TGX_ONE_COUNTER

cdef extern from "Python.h":
    PyObject *PyCell_GET(PyObject *cell)
    PyObject **PySequence_Fast_ITEMS(object row)
    PyObject *PyTuple_GET_ITEM(object row, Py_ssize_t i)

ABSENT = object()
cdef object _absent = ABSENT


cdef dict _changing = {}
cdef bint _turn = False


cdef uint64_t _now() except? 0:
    """The count of changes of all dicts, this one among them; 0 where they are not counted."""
    global _turn
    _turn = not _turn
    _changing[None] = _turn
    return tgx_dict_changes(<PyObject *>_changing)


cdef uint64_t _step() except? 0:
    """How far two counts are apart between which no other dict is changed; 0 where that tells nothing."""
    cdef uint64_t first = _now(), second = _now(), third = _now()
    return second - first if TGX_ONE_COUNTER and second - first == third - second else 0


cdef uint64_t _apart = _step()


cdef bint _is(object value, object known):
    """Whether a value is what it was: the same object, or a number or text that is equal."""
    cdef Py_ssize_t i
    if value is known:
        return True
    if type(value) is not type(known):
        return False
    if type(known) is tuple:
        if len(<tuple>value) != len(<tuple>known):
            return False
        for i in range(len(<tuple>known)):
            if not _is((<tuple>value)[i], (<tuple>known)[i]):
                return False
        return True
    return type(known) in (float, int, str) and value == known


def _is_no_dict(row):
    return not isinstance(row[0], dict)


cdef class Watch:
    """What containers held. `check()` says whether they still do."""

    def __init__(self, list rows):
        """rows: (dict, list, cell or object with slots, keys or None for all of a list, values, whether it has no more
        than these)."""
        cdef Py_ssize_t i
        cdef Seen *s
        rows = sorted(rows, key=_is_no_dict)
        self.held = [(container, tuple(keys), tuple(values)) for container, keys, values, _ in rows]
        self.seen = <Seen *>PyMem_Malloc(len(rows) * sizeof(Seen) + 1)
        if self.seen == NULL:
            raise MemoryError()
        self.count, self.ndicts = len(rows), 0
        for i in range(self.count):
            s = &self.seen[i]
            container, keys, values = self.held[i]
            s.container, s.keys, s.values = <PyObject *>container, <PyObject *>keys, <PyObject *>values
            s.kind = kind_of_container(container)
            self.ndicts += s.kind == DICT
            s.size, s.changes = len(keys) if rows[i][3] else -1, 0

    def __dealloc__(self):
        PyMem_Free(self.seen)

    cdef bint holds(self):
        cdef Py_ssize_t i
        cdef uint64_t changes, now = _now()
        cdef Seen *s = self.seen
        cdef PyObject *found
        for i in range(0 if _apart and now == self.when + _apart else self.ndicts):
            changes = tgx_dict_changes(s[i].container)
            if changes != s[i].changes or not changes:
                if not _dict_holds(&s[i]):
                    return False
                s[i].changes = changes
        for i in range(self.ndicts, self.count):
            if s[i].kind == CELL:
                found = PyCell_GET(s[i].container)
                if (<PyObject *>_absent if found == NULL else found) != PyTuple_GET_ITEM(<object>s[i].values, 0):
                    return False
            elif not (_row_holds(&s[i]) if s[i].kind == ROW else _slots_hold(&s[i])):
                return False
        self.when = now
        return True

    def check(self):
        """Whether all is as it was."""
        return self.holds()


cdef Container kind_of_container(object container):
    if isinstance(container, dict):
        return DICT
    if isinstance(container, list):
        return ROW
    return CELL if type(container) is CellType else SLOTS


cdef bint _dict_holds(Seen *s):
    cdef dict container = <dict>s.container
    cdef tuple keys = <tuple>s.keys, values = <tuple>s.values
    cdef Py_ssize_t i
    cdef PyObject *found
    if s.size >= 0 and len(container) != s.size:
        return False
    for i in range(len(keys)):
        found = PyDict_GetItem(container, keys[i])
        if not _is(_absent if found == NULL else <object>found, values[i]):
            return False
    return True


cdef bint _row_holds(Seen *s):
    cdef list container = <list>s.container
    cdef tuple keys = <tuple>s.keys, values = <tuple>s.values
    cdef Py_ssize_t i, at
    if s.size >= 0:
        if len(container) != s.size:
            return False
        return s.size == 0 or not memcmp(       # an empty list has no items, and memcmp takes no NULL
            PySequence_Fast_ITEMS(container), PySequence_Fast_ITEMS(values), s.size * sizeof(PyObject *))
    for i in range(len(keys)):
        at = keys[i]
        if at >= len(container) or container[at] is not values[i]:
            return False
    return True


cdef bint _slots_hold(Seen *s):
    cdef object container = <object>s.container
    cdef tuple keys = <tuple>s.keys, values = <tuple>s.values
    cdef Py_ssize_t i
    for i in range(len(keys)):
        if not _is(getattr(container, keys[i], _absent), values[i]):
            return False
    return True
