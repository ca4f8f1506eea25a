# cython: language_level=3
"""The call of a traced program: which graph, the values of its states, the plan, the new states; no frame of Python.

A `Binding` is a graph with the objects that its states are now, and what has to be as it was for that: kinds of the
arguments, `.grad` there or not, and a `Watch` of everything that the program can reach. The binding that was used
last is asked first. Where none fits, Python looks (tracing.Runner.find), binds or captures.

A Watch holds dicts with what stood in them. CPython counts the changes of each dict, so the usual answer costs one
comparison a dict; where the count differs the entries are compared, because others may have been set (a loop at the
top of a script sets its globals at each turn). Rejected: counters in Module and Optimizer, which every way to change
one would have to advance, `__dict__` included; a key of everything for a table, which costs more than the plan.
"""
from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, state
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.tensor cimport Tensor, exact, same_sizes, set_grad
from tinygrad_ext.graph.keys cimport same_kind

from tinygrad_ext.graph.primitives import GuardFailed

cdef extern from "vectorcall.h":
    void tgx_enable_vectorcall(object type, Py_ssize_t offset, bint method)

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
    """
    uint64_t tgx_dict_changes(PyObject *dict) nogil

cdef extern from "Python.h":
    PyObject *PyCell_GET(PyObject *cell)
    object PyObject_Vectorcall(PyObject *callable, PyObject **args, size_t n, PyObject *kwnames)
    PyObject **PySequence_Fast_ITEMS(object row)
    PyObject *PyTuple_GET_ITEM(object row, Py_ssize_t i)
    void Py_INCREF(PyObject *o)
    void Py_DECREF(PyObject *o)
    enum:
        PY_VECTORCALL_ARGUMENTS_OFFSET

cdef enum:
    FEW = 64                # values that find room on the stack

cdef enum Container:
    DICT
    CELL
    ROW                     # a list

cdef struct Seen:
    Container kind
    PyObject *container
    uint64_t changes
    Py_ssize_t size         # the container has so many entries; -1: others do not matter
    PyObject *keys          # tuple of keys of a dict, of numbers in a list
    PyObject *values        # tuple

ABSENT = object()
cdef object _absent = ABSENT


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


cdef class Watch:
    """What containers held. `check()` says whether they still do."""

    cdef Seen *seen
    cdef Py_ssize_t count
    cdef list held

    def __init__(self, list rows):
        """rows: (dict, list or cell, keys or None for all of a list, values, whether it has no more than these)."""
        cdef Py_ssize_t i
        cdef Seen *s
        self.held = [(container, tuple(keys), tuple(values)) for container, keys, values, _ in rows]
        self.seen = <Seen *>PyMem_Malloc(len(rows) * sizeof(Seen) + 1)
        if self.seen == NULL:
            raise MemoryError()
        self.count = len(rows)
        for i in range(self.count):
            s = &self.seen[i]
            container, keys, values = self.held[i]
            s.container, s.keys, s.values = <PyObject *>container, <PyObject *>keys, <PyObject *>values
            s.kind = DICT if isinstance(container, dict) else ROW if isinstance(container, list) else CELL
            s.size, s.changes = len(keys) if rows[i][3] else -1, 0

    def __dealloc__(self):
        PyMem_Free(self.seen)

    cdef bint holds(self):
        cdef Py_ssize_t i
        cdef uint64_t changes
        cdef Seen *s
        for i in range(self.count):
            s = &self.seen[i]
            if s.kind == DICT:
                changes = tgx_dict_changes(s.container)
                if changes != s.changes or not changes:
                    if not _dict_holds(s):
                        return False
                    s.changes = changes
            elif s.kind == CELL:
                if PyCell_GET(s.container) != PyTuple_GET_ITEM(<object>s.values, 0):
                    return False
            elif not _row_holds(s):
                return False
        return True

    def check(self):
        """Whether all is as it was."""
        return self.holds()


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
    if s.size >= 0 and len(container) != s.size:
        return False
    for i in range(len(keys)):
        at = keys[i]
        if at >= len(container) or container[at] is not values[i]:
            return False
    return True


# ---- a graph and its states ----------------------------------------------------------------------------------------

cdef enum Holding:          # where the value of a state is
    TENSOR                  # it is the owner
    OBJECT                  # the same, no tensor
    GRAD                    # the owner's .grad
    RATE                    # the owner's "lr"
    NOTHING                 # there is none yet

_HOLDINGS = {"tensor": TENSOR, "object": OBJECT, "grad": GRAD, "rate": RATE, "nothing": NOTHING}


cdef class Binding:
    """A captured graph with the objects that its states are now.

    Attributes: captured, a captured.Captured.
    """

    cdef readonly object captured
    cdef tuple kinds                # of the arguments, see graph/keys.pyx
    cdef tuple keywords
    cdef bint grad
    cdef Watch watch
    cdef dict executor              # attributes of what runs the graph
    cdef tuple owners
    cdef tuple owner_kinds
    cdef tuple holders
    cdef tuple written
    cdef tuple leaves               # tensors whose .grad is there, or not, as it was
    cdef tuple absent
    cdef bint plain                 # no gradient is asked of what it gives
    cdef Py_ssize_t count
    cdef int *holdings

    def __init__(self, captured, tuple kinds, tuple keywords, bint grad, Watch watch, bint plain):
        cdef Py_ssize_t i
        self.captured, self.kinds, self.keywords, self.grad, self.watch = captured, kinds, keywords, grad, watch
        self.plain = plain
        self.executor = captured.runner.__dict__
        self.holders = tuple(captured.holders)
        self.count = len(self.holders)
        self.owners = tuple([h.owner for h in self.holders])
        self.owner_kinds = tuple([h.kind for h in self.holders])
        self.written = tuple(captured.written)
        self.leaves = tuple([leaf for leaf, _ in captured.gradients.rows])
        self.absent = tuple([absent for _, absent in captured.gradients.rows])
        self.holdings = <int *>PyMem_Malloc(self.count * sizeof(int) + 1)
        if self.holdings == NULL:
            raise MemoryError()
        for i in range(self.count):
            self.holdings[i] = _HOLDINGS[self.holders[i].holding]

    def __dealloc__(self):
        PyMem_Free(self.holdings)

    cdef bint fits(self, PyObject **args, Py_ssize_t n, PyObject *names) except -1:
        """Whether it is the graph for a call."""
        cdef Py_ssize_t i
        if n != len(self.kinds) or self.grad != (not state().no_grad):
            return False
        if names == NULL:
            if len(self.keywords):
                return False
        elif <object>names != self.keywords:
            return False
        for i in range(n):
            if not same_kind(<object>args[i], <object>PyTuple_GET_ITEM(self.kinds, i)):
                return False
        return self.watch.holds() and self.is_bound()

    cdef bint is_bound(self) except -1:
        """Whether gradients are there, or not, as they were, and states of the same kinds."""
        cdef Py_ssize_t i
        cdef Tensor t
        for i in range(len(self.leaves)):
            t = <Tensor>PyTuple_GET_ITEM(self.leaves, i)
            if (t.grad_ is None) != <bint>(<object>PyTuple_GET_ITEM(self.absent, i) is True):
                return False
        for i in range(self.count):
            if self.holdings[i] == TENSOR:
                if not same_kind(<object>PyTuple_GET_ITEM(self.owners, i), <object>PyTuple_GET_ITEM(self.owner_kinds, i)):
                    return False
            elif self.holdings[i] == GRAD and <object>PyTuple_GET_ITEM(self.owner_kinds, i) is not None:
                t = <Tensor>PyTuple_GET_ITEM(self.owners, i)
                if not same_kind(t.grad_, <object>PyTuple_GET_ITEM(self.owner_kinds, i)):
                    return False
        return True

    cdef object run(self, PyObject **args, Py_ssize_t n):
        cdef PyObject *few[FEW]
        cdef PyObject **row = few
        cdef tuple results
        cdef Py_ssize_t i, filled = 0, total = n + self.count
        if not self.plain:
            return self.captured(tuple([<object>args[i] for i in range(n)]))
        if total >= FEW:
            row = <PyObject **>PyMem_Malloc((total + 1) * sizeof(PyObject *))
            if row == NULL:
                raise MemoryError()
        row += 1                            # what is called may use the place before
        try:
            for i in range(n):
                row[i] = args[i]
            while filled < self.count:
                row[n + filled] = self.read(filled)
                filled += 1
            function = PyDict_GetItem(self.executor, "function")
            results = <tuple>PyObject_Vectorcall(function, row, <size_t>total | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
            if len(self.written):
                self.write_back(results, row + n)
            return results[0]
        finally:
            for i in range(filled):
                Py_DECREF(row[n + i])
            row -= 1
            if row != few:
                PyMem_Free(row)

    cdef PyObject *read(self, Py_ssize_t i) except NULL:
        """The value of a state, a new reference."""
        cdef object value = <object>PyTuple_GET_ITEM(self.owners, i)
        cdef int holding = self.holdings[i]
        if holding == GRAD:
            value = (<Tensor>value).grad_
        elif holding == RATE:
            value = (<dict>value)["lr"]
            if type(value) is not float:
                value = float(value)
        elif holding == NOTHING:
            value = None
        Py_INCREF(<PyObject *>value)
        return <PyObject *>value

    cdef int write_back(self, tuple results, PyObject **before) except -1:
        """Leave new states with their owners. The first result is that of the program."""
        cdef Py_ssize_t i, first = len(results) - self.count
        cdef Tensor leaf
        for k in self.written:
            i = k
            new = <object>PyTuple_GET_ITEM(results, first + i)
            if <PyObject *>new == before[i]:
                continue                    # the plan has left it there
            if self.holdings[i] == GRAD:
                leaf = <Tensor>PyTuple_GET_ITEM(self.owners, i)
                if new is None or (exact(new) and same_sizes(leaf, <Tensor>new) and leaf.tid == (<Tensor>new).tid
                                   and leaf.device_id == (<Tensor>new).device_id):
                    set_grad(leaf, new)
                    continue
            elif self.holdings[i] == OBJECT and type(new) is Generator:
                (<Generator>PyTuple_GET_ITEM(self.owners, i)).mt = (<Generator>new).mt
                continue
            self.captured.write(i, new)
        return 0


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
        cdef list results = []
        for item in data:
            given = item if type(item) is tuple else tuple(item) if isinstance(item, (list, tuple)) else (item,)
            try:
                PyErr_CheckSignals()
                results.append(self.call(PySequence_Fast_ITEMS(given), len(<tuple>given), NULL))
            except Exception as error:
                if error.args and type(error.args[0]) is str:
                    error.args = (f"{error.args[0]}\n  in step {len(results)} of repeat()", *error.args[1:])
                raise
        return results

    def __reduce__(self):
        return _made_again, (type(self), self.runner, getattr(self, "__dict__", {}))

    cdef object call(self, PyObject **args, Py_ssize_t n, PyObject *names):
        cdef Py_ssize_t i
        cdef Binding b
        cdef list tried = None
        if state().flags & TGX_LEVELS and self.runner.is_written_down():
            return PyObject_Vectorcall(<PyObject *>self.runner.function, args,
                                       n - (0 if names == NULL else len(<tuple>names)), names)
        for i in range(len(self.bindings)):
            b = <Binding>self.bindings[i]
            if b.fits(args, n, names):
                if i:
                    self.bindings.insert(0, self.bindings.pop(i))
                try:
                    return b.run(args, n)
                except GuardFailed as failed:
                    tried = [b.captured]
                    self.runner.reasons.append(str(failed))
                    break
        given = tuple([<object>args[i] for i in range(n)])
        keywords = () if names == NULL else <tuple>names
        return self.look(given, keywords, args, n, tried or [])

    cdef object look(self, tuple given, tuple keywords, PyObject **args, Py_ssize_t n, list tried):
        """Have a binding found or made, and run it."""
        cdef Binding b
        while True:
            b = self.runner.find(given, keywords, tried)
            self.bindings = [b, *[old for old in self.bindings if (<Binding>old).captured is not b.captured]]
            try:
                return b.run(args, n)
            except GuardFailed as failed:
                tried.append(b.captured)
                self.runner.reasons.append(str(failed))


cdef object _vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *names):
    cdef Py_ssize_t n = nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
    if names != NULL and not len(<tuple>names):
        names = NULL
    return (<Call>callable).call(args, n + (0 if names == NULL else len(<tuple>names)), names)


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
