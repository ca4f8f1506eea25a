# cython: language_level=3
"""Where exceptions leave the library: what a traceback shows.

Compiled functions take the library's frames off by themselves (`tracebacks.h`). Public Python functions that are called
by the user's code directly have none above them that could, so `boundary` puts one there: about 30 ns a call, so it is
for what is not called in a hot loop. Hiding the frames by marking their code objects was the other way; it takes them
from debuggers and profilers too.
"""
from types import FunctionType

from cpython.object cimport PyObject

cdef extern from "own_tracebacks.h":
    int tgx_set_own_folder(object folder) except -1
    void tgx_show_all_frames(bint full)
    bint tgx_all_frames_shown()

cdef extern from "Python.h":
    object PyMethod_New(object fn, object instance)
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)

cdef extern from "vectorcall.h":
    void tgx_enable_vectorcall(object type, Py_ssize_t offset, bint method)


def set_own_folder(str folder):
    """Frames of files below this folder are the library's."""
    tgx_set_own_folder(folder)


def full_tracebacks():
    """Whether tracebacks show the library's frames too.

    >>> import tinygrad_ext as tg
    >>> tg.config.full_tracebacks()
    False
    """
    return tgx_all_frames_shown()


def set_full_tracebacks(mode):
    """Let tracebacks show the library's own frames, Python and compiled ones, or the user's only (the default).

    For the whole process, from the next exception on. ``TINYGRAD_EXT_TRACEBACKS=full`` in the environment is the same
    from the start.

    Args:
        mode: a bool.

    >>> import tinygrad_ext as tg
    >>> tg.config.set_full_tracebacks(True)
    >>> tg.config.full_tracebacks()
    True
    >>> tg.config.set_full_tracebacks(False)
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_full_tracebacks(): mode must be a bool, not {type(mode).__name__}")
    tgx_show_all_frames(mode)


cdef class Boundary:
    """A public function; an exception that leaves it carries no frames of the library."""
    cdef void *vectorcall
    cdef object inner
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, inner):
        self.vectorcall = <void *>_vectorcall
        self.inner = inner
        for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__defaults__",
                     "__kwdefaults__", "__code__"):
            setattr(self, name, getattr(inner, name))
        for name, value in {**vars(inner), "__wrapped__": inner}.items():
            setattr(self, name, value)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __repr__(self):
        return repr(self.inner)

    def __reduce__(self):
        return getattr(self, "__qualname__")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


cdef object _vectorcall(PyObject *callable, PyObject **args, size_t n, PyObject *kwnames):
    return PyObject_Vectorcall((<Boundary>callable).inner, args, n, kwnames)


_DUNDERS = {f"__{word}__" for word in "init call getattr setattr delattr getitem enter exit".split()}


def boundary(public):
    """Decorator of a public function, or of a class for all its public methods.

    Exceptions that leave it carry no frames of the library.
    """
    if type(public) is FunctionType:
        return Boundary(public)
    for name, value in list(vars(public).items()):
        if type(value) is FunctionType and (name in _DUNDERS or name[:1] != "_") and name != "forward":
            setattr(public, name, Boundary(value))
    return public


cdef class Steps:
    """An iterator that runs code of the library and of users, such as a generator."""
    cdef object inner

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.inner)


def _install():
    cdef Boundary probe = Boundary.__new__(Boundary)
    tgx_enable_vectorcall(Boundary, <char *>&probe.vectorcall - <char *><PyObject *>probe, True)


_install()
