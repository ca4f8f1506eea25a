# cython: language_level=3
"""The call of a traced program: which graph, the values of its states, the plan, the new states; no frame of Python.

A `Binding` is a graph with the objects that its states are now, and what has to be as it was for that: kinds of the
arguments, `.grad` there or not, and a `Watch` (watch.pyx) of everything that the program can reach. The binding that
was used last is asked first. Where none fits, Python looks (tracing.Runner.find), binds or captures.
"""
from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.string cimport memmove
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, state
from tinygrad_ext.core.call.levels cimport all_watch
from tinygrad_ext.core.call.outputs cimport check_writable
from tinygrad_ext.core.call.places cimport note_mutation
from tinygrad_ext.core.data.dtype cimport CPU
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.tensor cimport CONTIGUOUS, Tensor, bump, exact, same_sizes, set_grad
from tinygrad_ext.core.data.types cimport ITEMSIZE, int64_t
from tinygrad_ext.graph.joint_call cimport JointCall
from tinygrad_ext.graph.keys cimport kind_of_tensor, same_kind
from tinygrad_ext.jit.watch cimport Watch

from tinygrad_ext.graph.aliases import SharedMemoryError
from tinygrad_ext.graph.derivative import derivative_of
from tinygrad_ext.graph.keys import key_of
from tinygrad_ext.graph.primitives import GuardFailed

cdef extern from "vectorcall.h":
    void tgx_enable_vectorcall(object type, Py_ssize_t offset, bint method)

cdef extern from "Python.h":
    object PyObject_Vectorcall(PyObject *callable, PyObject **args, size_t n, PyObject *kwnames)
    PyObject **PySequence_Fast_ITEMS(object row)
    PyObject *PyTuple_GET_ITEM(object row, Py_ssize_t i)
    void Py_INCREF(PyObject *o)
    void Py_DECREF(PyObject *o)
    enum:
        PY_VECTORCALL_ARGUMENTS_OFFSET

cdef enum:
    FEW = 64                # values that find room on the stack

include "calls_binding.pxi"


# ---- the call ------------------------------------------------------------------------------------------------------

cdef class Call:
    """What is called in the place of a traced program. Attributes: runner, a tracing.Runner."""

    cdef void *vectorcall
    cdef readonly object runner
    cdef list bindings              # the last used first
    cdef object __weakref__

    def __cinit__(self, *args, **kwargs):
        self.vectorcall = <void *>_vectorcall
        self.bindings = []

    def __init__(self, runner):
        self.runner = runner

    def repeat(self, data):
        """`[self(*arguments) for arguments in data]`, in one call.

        data: any iterable of tuples or lists of arguments, such as a loader of batches, `zip(inputs, targets)` of tensors
        whose first dimension counts the steps, or `[(x, y)] * 100`; what is no tuple and no list is the only argument.

        Each step is what a call would be: what changed since the last one is noticed, another geometry gets a plan of
        its own. An error tells the number of the step; the steps before it, or before an interrupt, are done.
        """
        return repeated(self, data)

    def __reduce__(self):
        return _made_again, (type(self), self.runner, getattr(self, "__dict__", {}))

    cdef object call(self, PyObject **args, Py_ssize_t n, PyObject *names):
        cdef Py_ssize_t i
        cdef Binding b
        cdef list tried = None
        if state().flags & TGX_LEVELS and self.runner.is_seen_op_by_op():
            return PyObject_Vectorcall(<PyObject *>self.runner.function, args,
                                       n - (0 if names == NULL else len(<tuple>names)), names)
        b = self.fitting(args, n, names)
        if b is not None:
            try:
                return b.run(args, n)
            except GuardFailed as failed:
                tried = [b.captured]
                self.runner.reasons.append(str(failed))
        given = tuple([<object>args[i] for i in range(n)])
        keywords = () if names == NULL else <tuple>names
        return self.look(given, keywords, args, n, names, tried or [])

    cdef Binding fitting(self, PyObject **args, Py_ssize_t n, PyObject *names):
        """The binding for a call, put before the others; None where there is none yet."""
        cdef Py_ssize_t i
        for i in range(len(self.bindings)):
            if (<Binding>self.bindings[i]).fits(args, n, names):
                if i:
                    self.bindings.insert(0, self.bindings.pop(i))
                return <Binding>self.bindings[0]
        return None

    cdef object look(self, tuple given, tuple keywords, PyObject **args, Py_ssize_t n, PyObject *names, list tried):
        """Have a binding found or made, and run it. Where what the program writes to lies in memory that it has by another
        name too, no graph tells what is written when, and the program itself runs."""
        cdef Binding b
        while True:
            try:
                b = self.runner.find(given, keywords, tried)
            except SharedMemoryError:
                if isinstance(self, FirstCall):     # who says why, and runs it
                    raise
                return PyObject_Vectorcall(<PyObject *>self.runner.function, args, n - len(keywords), names)
            self.bindings = [b, *[old for old in self.bindings if (<Binding>old).captured is not b.captured]]
            try:
                return b.run(args, n)
            except GuardFailed as failed:
                tried.append(b.captured)
                self.runner.reasons.append(str(failed))


cdef class FirstCall(Call):
    """A Call that asks `otherwise(args, kwargs)` unless a graph is ready, or where that raises; what runs there may ask
    `from_graph`, which captures."""

    cdef object call(self, PyObject **args, Py_ssize_t n, PyObject *names):
        cdef Binding b = None if state().flags & TGX_LEVELS and not all_watch() else self.fitting(args, n, names)
        cdef Py_ssize_t i, first = n - (0 if names == NULL else len(<tuple>names))
        if b is not None and (b.plain or b.joints is not None):
            try:
                return b.run(args, n)
            except Exception:           # nothing has changed; what is wrong with the program is said there
                pass
        given = tuple([<object>args[i] for i in range(n)])
        return self.otherwise(given[:first], {} if names == NULL else dict(zip(<tuple>names, given[first:])))

    def from_graph(self, tuple args, dict kwargs):
        """The call, from a graph that may be captured now."""
        cdef tuple names = tuple(kwargs), row = (*args, *kwargs.values())
        return Call.call(self, PySequence_Fast_ITEMS(row), len(row), <PyObject *>names if names else NULL)

    def forget(self):
        """Let the next call be looked up anew."""
        self.bindings = []


cdef object _vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *names):
    cdef Py_ssize_t n = nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
    if names != NULL and not len(<tuple>names):
        names = NULL
    return (<Call>callable).call(args, n + (0 if names == NULL else len(<tuple>names)), names)


def repeated(call, data):
    """See Call.repeat; call: what is called."""
    cdef list results = []
    for item in data:
        given = item if type(item) is tuple else tuple(item) if isinstance(item, (list, tuple)) else (item,)
        try:
            PyErr_CheckSignals()
            results.append(PyObject_Vectorcall(<PyObject *>call, PySequence_Fast_ITEMS(given), len(<tuple>given), NULL))
        except Exception as error:
            if error.args and type(error.args[0]) is str:
                error.args = (f"{error.args[0]}\n  in step {len(results)} of repeat()", *error.args[1:])
            raise
    return results


def _made_again(cls, runner, attributes):
    made = cls.__new__(cls, runner)
    Call.__init__(made, runner)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def called_in_c(cls):
    """Decorator of classes derived from Call: their instances are called without a frame too."""
    cdef Call probe = Call.__new__(Call, None)
    tgx_enable_vectorcall(cls, <char *>&probe.vectorcall - <char *><PyObject *>probe, False)
    return cls


called_in_c(Call)
called_in_c(FirstCall)
