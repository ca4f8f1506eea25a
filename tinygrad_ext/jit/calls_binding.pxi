# A graph with the objects that its states are now. Part of calls.pyx.

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
    cdef dict executor              # attributes of what runs the graph; None where a gradient is asked of what it gives
    cdef tuple owners
    cdef tuple owner_kinds
    cdef long *numbers              # the same of tensors: their kinds, else -1
    cdef tuple holders
    cdef Py_ssize_t nwritten
    cdef tuple leaves               # tensors whose .grad is there, or not, as it was
    cdef tuple absent
    cdef tuple asked                # (path of an argument, whether it has no .grad), (None, an answers.Answer)
    cdef bint alike                 # arguments may be one tensor, or a state
    cdef bint finishes              # the result is not what the graph gives, see Captured.with_own
    cdef tuple changed              # tensors that are written to
    cdef tuple changed_arguments    # paths of arguments that are
    cdef bint plain                 # no gradient is asked of what it gives
    cdef list joints                # else: the Joints for its values, where they are known
    cdef Py_ssize_t count
    cdef int *holdings              # of each state; then the numbers of those that are written

    def __init__(self, captured, tuple kinds, tuple keywords, bint grad, Watch watch, bint plain):
        cdef Py_ssize_t i
        self.captured, self.kinds, self.keywords, self.grad, self.watch = captured, kinds, keywords, grad, watch
        self.plain = plain
        self.executor = captured.runner.__dict__ if plain else None
        self.holders = tuple(captured.holders)
        self.count = len(self.holders)
        self.owners = tuple([h.owner for h in self.holders])
        self.owner_kinds = tuple([h.kind for h in self.holders])
        self.nwritten = len(captured.written)
        self.leaves = tuple([leaf for leaf, _ in captured.gradients.rows])
        self.absent = tuple([absent for _, absent in captured.gradients.rows])
        self.asked = (*captured.gradients.asked, *[(None, answer) for answer in captured.answers])
        self.alike = captured.alike
        self.finishes = len(captured.returned) > 0 or captured.again is not None
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
            if path is None:
                if not absent.holds(tuple([<object>args[i] for i in range(n)])):
                    return False
                continue
            t = <Tensor>_at(args, path)
            if (t.grad_ is None) is not absent or t.node is not None:
                return False
        if len(self.changed) or len(self.changed_arguments):
            for i in range(n):
                if not len(self.changed_arguments) and exact(<object>args[i]):
                    if not self.is_unchanged(<Tensor>args[i]):
                        return False
                elif not self.is_apart_from(<object>args[i], args, (i,)):
                    return False
        return True

    cdef inline bint is_unchanged(self, Tensor t) noexcept:
        """Whether a tensor lies elsewhere than the states that are written to."""
        cdef Py_ssize_t i
        for i in range(len(self.changed)):
            if _overlap(t, <Tensor>PyTuple_GET_ITEM(self.changed, i)) and not (
                    self.alike and <PyObject *>t == PyTuple_GET_ITEM(self.changed, i)):
                return False
        return True

    cdef bint is_apart_from(self, object o, PyObject **args, tuple path) except -1:
        """Whether tensors in an argument lie elsewhere than the others that are written to."""
        if exact(o):
            if not self.is_unchanged(<Tensor>o):
                return False
            for other in self.changed_arguments:
                if other != path and _overlap(<Tensor>o, <Tensor>_at(args, other)) and not (
                        self.alike and o is _at(args, other)):
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
        if total >= FEW:
            row = <PyObject **>PyMem_Malloc((total + 1) * sizeof(PyObject *))
            if row == NULL:
                raise MemoryError()
        row += 1                            # what is called may use the place before
        try:
            for i in range(n):
                row[i] = args[i]
            while filled < self.count:
                if self.holdings[filled] <= OBJECT:
                    row[n + filled] = PyTuple_GET_ITEM(self.owners, filled)
                    Py_INCREF(row[n + filled])
                else:
                    row[n + filled] = self.read(filled, args)
                filled += 1
            if self.plain:
                function = PyDict_GetItem(self.executor, "function")
                results = <tuple>PyObject_Vectorcall(function, row, <size_t>total | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
            else:
                results = self.run_derived(row, n, total)
            if self.nwritten:
                self.write_back(results, row + n, args)
            if self.finishes:
                return self.captured.with_own(results[0], [<object>row[n + i] for i in range(self.count)])
            return results[0]
        finally:
            for i in range(filled):
                Py_DECREF(row[n + i])
            row -= 1
            if row != few:
                PyMem_Free(row)

    cdef tuple run_derived(self, PyObject **row, Py_ssize_t n, Py_ssize_t total):
        """The same where a gradient is asked of what the graph gives: with history."""
        cdef Py_ssize_t i
        cdef JointCall joint
        if self.joints is not None and (not state().flags & TGX_LEVELS or all_watch()):
            for i in range(len(self.joints)):
                joint = <JointCall>self.joints[i].call
                if joint.flat:
                    try:
                        return joint.run(row)
                    except GuardFailed:
                        continue
        values = tuple([<object>row[i] for i in range(total)])
        derivative = derivative_of(self.captured.graph)
        outputs, new = derivative(values[:n], values[n:])
        if self.count == 0 or _HOLDINGS["argument.grad"] not in [self.holdings[i] for i in range(self.count)]:
            self.joints = derivative.joints.get(key_of(values))         # for all values that the binding is for
        return (*outputs, *new)

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
            elif self.holdings[i] == TENSOR and exact(new) and _put(<Tensor>PyTuple_GET_ITEM(self.owners, i), <Tensor>new):
                continue
            self.captured.write(i, new, tuple([<object>args[k] for k in range(len(self.kinds))]))
        return 0


cdef bint _put(Tensor into, Tensor new) except -1:
    """Write elements into a tensor where that is a copy of bytes; whether it was."""
    if not exact(into) or not into.bits & new.bits & CONTIGUOUS or into.tid != new.tid or not same_sizes(into, new):
        return False
    if into.device_id != CPU or new.device_id != CPU:
        return False
    check_writable(into, "the new value of a state")
    memmove(into.data, new.data, into.count * ITEMSIZE[into.tid])
    bump(into)
    note_mutation(into)
    return True


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


cdef inline bint _overlap(Tensor a, Tensor b) noexcept:
    """Whether two tensors may have elements in the same memory."""
    return a.storage is b.storage and a.count and b.count and _meet(a, b)


cdef bint _meet(Tensor a, Tensor b) noexcept:
    """Whether two windows on one storage may have an element in common."""
    cdef int64_t last_a = 0, last_b = 0
    cdef int i
    for i in range(a.rank):
        last_a += (a.sizes[i] - 1) * a.strides[i]
    for i in range(b.rank):
        last_b += (b.sizes[i] - 1) * b.strides[i]
    return a.data <= b.data + last_b * ITEMSIZE[b.tid] and b.data <= a.data + last_a * ITEMSIZE[a.tid]
