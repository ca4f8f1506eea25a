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
from tinygrad_ext.core.call.dispatch cimport TGX_LEVELS, state
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.tensor cimport Tensor, exact, same_sizes, set_grad
from tinygrad_ext.core.data.types cimport ITEMSIZE, int64_t
from tinygrad_ext.graph.keys cimport kind_of_tensor, same_kind
from tinygrad_ext.jit.watch cimport Watch

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

# ---- a graph and its states ----------------------------------------------------------------------------------------

cdef enum Holding:          # where the value of a state is
    TENSOR                  # it is the owner
    OBJECT                  # the same, no tensor
    GRAD                    # the owner's .grad
    RATE                    # the owner's "lr"
    NOTHING                 # there is none yet
    ARGUMENT                # the owner is its path in the arguments
    ARGUMENT_GRAD           # the .grad of one

_HOLDINGS = {"tensor": TENSOR, "object": OBJECT, "grad": GRAD, "rate": RATE, "nothing": NOTHING, "argument": ARGUMENT,
             "argument.grad": ARGUMENT_GRAD}


cdef str _RATE = "lr"


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
    cdef long *numbers              # the same of tensors: their kinds, else -1
    cdef tuple holders
    cdef Py_ssize_t nwritten
    cdef tuple leaves               # tensors whose .grad is there, or not, as it was
    cdef tuple absent
    cdef tuple asked                # (path of an argument, whether it has no .grad)
    cdef tuple returned             # (path in the result, state) of results that are what was written to
    cdef tuple changed              # tensors that are written to
    cdef tuple changed_arguments    # paths of arguments that are
    cdef bint plain                 # no gradient is asked of what it gives
    cdef Py_ssize_t count
    cdef int *holdings              # of each state; then the numbers of those that are written

    def __init__(self, captured, tuple kinds, tuple keywords, bint grad, Watch watch, bint plain):
        cdef Py_ssize_t i
        self.captured, self.kinds, self.keywords, self.grad, self.watch = captured, kinds, keywords, grad, watch
        self.plain = plain
        self.executor = captured.runner.__dict__
        self.holders = tuple(captured.holders)
        self.count = len(self.holders)
        self.owners = tuple([h.owner for h in self.holders])
        self.owner_kinds = tuple([h.kind for h in self.holders])
        self.nwritten = len(captured.written)
        self.leaves = tuple([leaf for leaf, _ in captured.gradients.rows])
        self.absent = tuple([absent for _, absent in captured.gradients.rows])
        self.asked = tuple(captured.gradients.asked)
        self.returned = captured.returned
        self.changed = tuple([self.owners[i] for i in captured.written if self.holders[i].holding == "tensor"])
        self.changed_arguments = tuple([self.owners[i] for i in captured.written if self.holders[i].holding == "argument"])
        self.holdings = <int *>PyMem_Malloc((self.count + self.nwritten + 1) * sizeof(int))
        if self.holdings == NULL:
            raise MemoryError()
        self.numbers = <long *>PyMem_Malloc(self.count * sizeof(long) + 1)
        if self.numbers == NULL:
            raise MemoryError()
        for i in range(self.count):
            self.holdings[i] = _HOLDINGS[self.holders[i].holding]
            self.numbers[i] = self.owner_kinds[i] if type(self.owner_kinds[i]) is int else -1
        for i in range(self.nwritten):
            self.holdings[self.count + i] = captured.written[i]

    def __dealloc__(self):
        PyMem_Free(self.holdings)
        PyMem_Free(self.numbers)

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
        return self.watch.holds() and self.is_bound() and self.is_apart(args, n)

    def takes(self, *args):
        """Whether what it writes to is memory of its own for such arguments, and their gradients are as they were."""
        return self.is_apart(PySequence_Fast_ITEMS(args), len(args))

    cdef bint is_apart(self, PyObject **args, Py_ssize_t n) except -1:
        cdef Py_ssize_t i
        cdef Tensor t
        for path, absent in self.asked:
            t = <Tensor>_at(args, path)
            if (t.grad_ is None) is not absent or t.node is not None:
                return False
        if len(self.changed) or len(self.changed_arguments):
            for i in range(n):
                if not self.is_apart_from(<object>args[i], args, (i,)):
                    return False
        return True

    cdef bint is_apart_from(self, object o, PyObject **args, tuple path) except -1:
        """Whether tensors in an argument lie elsewhere than the others that are written to."""
        cdef Py_ssize_t i
        if exact(o):
            for i in range(len(self.changed)):
                if _overlap(<Tensor>o, <Tensor>PyTuple_GET_ITEM(self.changed, i)):
                    return False
            for other in self.changed_arguments:
                if other != path and _overlap(<Tensor>o, <Tensor>_at(args, other)):
                    return False
            return self.is_no_state(o, path)
        if isinstance(o, (tuple, list, dict)):
            for key, part in o.items() if isinstance(o, dict) else enumerate(o):
                if not self.is_apart_from(part, args, (*path, key)):
                    return False
        return True

    cdef bint is_no_state(self, Tensor t, tuple path) except -1:
        """Whether an argument, if it is written to, lies elsewhere than all states."""
        cdef Py_ssize_t i
        if path in self.changed_arguments:
            for i in range(self.count):
                if self.holdings[i] == TENSOR and _overlap(t, <Tensor>PyTuple_GET_ITEM(self.owners, i)):
                    return False
        return True

    cdef bint is_bound(self) except -1:
        """Whether gradients are there, or not, as they were, and states of the same kinds."""
        cdef Py_ssize_t i
        cdef Tensor t
        for i in range(len(self.leaves)):
            t = <Tensor>PyTuple_GET_ITEM(self.leaves, i)
            if (t.grad_ is None) != <bint>(<object>PyTuple_GET_ITEM(self.absent, i) is True):
                return False
        for i in range(self.count):
            if self.holdings[i] == TENSOR and self.numbers[i] >= 0:
                if kind_of_tensor(<Tensor>PyTuple_GET_ITEM(self.owners, i)) != self.numbers[i]:
                    return False
            elif self.holdings[i] == TENSOR:
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
                row[n + filled] = self.read(filled, args)
                filled += 1
            function = PyDict_GetItem(self.executor, "function")
            results = <tuple>PyObject_Vectorcall(function, row, <size_t>total | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
            if self.nwritten:
                self.write_back(results, row + n, args)
            if len(self.returned):
                return self.captured.with_own(results[0], [<object>row[n + i] for i in range(self.count)])
            return results[0]
        finally:
            for i in range(filled):
                Py_DECREF(row[n + i])
            row -= 1
            if row != few:
                PyMem_Free(row)

    cdef PyObject *read(self, Py_ssize_t i, PyObject **args) except NULL:
        """The value of a state, a new reference."""
        cdef PyObject *value = PyTuple_GET_ITEM(self.owners, i)
        cdef int holding = self.holdings[i]
        if holding == GRAD:
            value = <PyObject *>(<Tensor>value).grad_
        elif holding == RATE:
            value = PyDict_GetItem(<dict>value, _RATE)
            if value == NULL or type(<object>value) is not float:
                return _taken(float((<dict>PyTuple_GET_ITEM(self.owners, i))["lr"]))
        elif holding == NOTHING:
            value = <PyObject *>None
        elif holding == ARGUMENT:
            return _taken(_at(args, <tuple>value))
        elif holding == ARGUMENT_GRAD:
            return _taken((<Tensor>_at(args, <tuple>value)).grad_)
        Py_INCREF(value)
        return value

    cdef int write_back(self, tuple results, PyObject **before, PyObject **args) except -1:
        """Leave new states with their owners. The first result is that of the program."""
        cdef Py_ssize_t i, k, first = len(results) - self.count
        cdef Tensor leaf
        for k in range(self.nwritten):
            i = self.holdings[self.count + k]
            new = <object>PyTuple_GET_ITEM(results, first + i)
            if <PyObject *>new == before[i]:
                continue                    # the plan has left it there
            if self.holdings[i] == GRAD and <object>PyTuple_GET_ITEM(self.owner_kinds, i) is None:
                leaf = <Tensor>PyTuple_GET_ITEM(self.owners, i)
                if new is None or (exact(new) and same_sizes(leaf, <Tensor>new) and leaf.tid == (<Tensor>new).tid
                                   and leaf.device_id == (<Tensor>new).device_id):
                    set_grad(leaf, new)
                    continue
            elif self.holdings[i] == OBJECT and type(new) is Generator:
                (<Generator>PyTuple_GET_ITEM(self.owners, i)).mt = (<Generator>new).mt
                continue
            self.captured.write(i, new, tuple([<object>args[k] for k in range(len(self.kinds))]))
        return 0


cdef PyObject *_taken(object value) noexcept:
    """A reference of one's own."""
    Py_INCREF(<PyObject *>value)
    return <PyObject *>value


cdef object _at(PyObject **args, tuple path):
    """What stands at a path in the arguments."""
    cdef Py_ssize_t i
    cdef object found = <object>args[<Py_ssize_t>path[0]]
    for i in range(1, len(path)):
        found = found[path[i]]
    return found


cdef bint _overlap(Tensor a, Tensor b) noexcept:
    """Whether two tensors may have elements in the same memory."""
    cdef int64_t last_a = 0, last_b = 0
    cdef int i
    if a.storage is not b.storage or a.count == 0 or b.count == 0:
        return False
    for i in range(a.rank):
        last_a += (a.sizes[i] - 1) * a.strides[i]
    for i in range(b.rank):
        last_b += (b.sizes[i] - 1) * b.strides[i]
    return a.data <= b.data + last_b * ITEMSIZE[b.tid] and b.data <= a.data + last_a * ITEMSIZE[a.tid]


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
