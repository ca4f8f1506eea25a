"""What a program can reach, for the call of what was traced (calls.pyx)."""
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

cdef enum Container:
    DICT
    CELL
    ROW                     # a list
    SLOTS                   # an object

cdef struct Seen:
    Container kind
    PyObject *container
    uint64_t changes
    Py_ssize_t size         # the container has so many entries; -1: others do not matter
    PyObject *keys          # tuple of keys of a dict, of numbers in a list
    PyObject *values        # tuple

cdef class Watch:
    cdef Seen *seen
    cdef Py_ssize_t count, ndicts       # dicts stand before the others
    cdef uint64_t when              # it held the last time, see _now()
    cdef list held
    cdef bint holds(self)
