# The plans of one row of nodes, and the call that chooses among them. Part of routine.pyx.

cdef class Runner:
    """The plans of a row of nodes, called like a function of what they read.

    The routine that was used last is asked first, the others in the order of their last use; a key for a table would cost as
    much as a look at ten of them.
    """

    cdef void *vectorcall
    cdef readonly list routines
    cdef object missed, failed
    cdef int ninputs

    def __init__(self, int ninputs, missed, failed):
        """missed(inputs): a Routine for them, or the results; failed(inputs, error): the results, or it raises."""
        self.vectorcall = <void *>_vectorcall
        self.ninputs, self.missed, self.failed, self.routines = ninputs, missed, failed, []

    cdef Routine _find(self, PyObject **args):
        cdef Py_ssize_t i
        cdef Routine p
        for i in range(len(self.routines)):
            p = <Routine>self.routines[i]
            if p.takes(args):
                if i:
                    self.routines.insert(0, self.routines.pop(i))
                return p
        return None

    cdef int _keep(self, Routine made) except -1:
        """Put a routine before the others, of which the longest unused go when there are too many or they hold too much."""
        cdef int64_t held = 0
        cdef Py_ssize_t i = 0
        while i < min(len(self.routines), PLANS - 1) and held <= ARENAS:
            held += (<Routine>self.routines[i]).arena_bytes
            i += 1
        self.routines = [made, *self.routines[:i - (held > ARENAS)]]
        return 0

    def find(self, *args):
        """The routine that takes these inputs, or None."""
        return self._find(PySequence_Fast_ITEMS(args)) if len(args) == self.ninputs else None


cdef object _vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *kwnames):
    cdef Runner self = <Runner>callable
    cdef Py_ssize_t i, n = nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
    cdef Routine p
    cdef object results
    if n != self.ninputs or kwnames != NULL:
        raise TypeError(f"the graph takes {self.ninputs} values by position, inputs and then states; {n} are given")
    p = self._find(args)
    if p is not None and p.resting:
        p.resting -= 1
        return self.failed(tuple([<object>args[i] for i in range(n)]), None)
    if p is not None:
        try:
            results = p.run(args)
        except Failed as error:
            results = self.failed(tuple([<object>args[i] for i in range(n)]), error)
            p.rest()                # nothing is wrong with the program: the plan is not for such numbers
            return results
        p.rests = 0
        return results
    given = tuple([<object>args[i] for i in range(n)])
    made = self.missed(given)
    if not isinstance(made, Routine):
        return made
    self._keep(made)
    try:
        return (<Routine>made).run(args)
    except Failed as error:
        results = self.failed(given, error)
        (<Routine>made).rest()
        return results


def _install():
    cdef Runner probe = Runner.__new__(Runner)
    tgx_enable_vectorcall(Runner, <char *>&probe.vectorcall - <char *><PyObject *>probe, False)


_install()


def difference(Routine self not None, tuple values, names):
    """What about values the routine was not made for."""
    cdef int i
    cdef Guard *g
    cdef Tensor t
    if self.default_dtype != default_id():
        return "the default dtype changed"
    for i in range(self.ninputs):
        g = &self.guards[i]
        value = values[i]
        if g.kind == TENSOR and isinstance(value, Tensor):
            t = <Tensor>value
            sizes = [g.geometry[k] for k in range(g.rank)]
            strides = [g.geometry[g.rank + k] for k in range(g.rank)]
            if t.tid != g.dtype:
                return f"{names[i]} is {dtype_of(t.tid)}, it was {dtype_of(g.dtype)}"
            if list(t.shape) != sizes:
                return f"{names[i]} has sizes {list(t.shape)}, it had {sizes}"
            if list(t.stride()) != strides:
                return f"{names[i]} has strides {list(t.stride())}, it had {strides}"
        elif g.kind == VALUE and not _equal(value, <object>g.known):
            return f"{names[i]}, on which sizes or other fixed arguments depend, is {value!r}, it was {<object>g.known!r}"
        elif g.kind == NUMBER and type(value) is not <object>g.known:
            return f"{names[i]} is a {type(value).__name__}, it was a {(<object>g.known).__name__}"
    return "the plan for it was running" if self.busy else "an input is of another kind"
