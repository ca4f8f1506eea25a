# cython: language_level=3
"""A block with control flow as a row of steps over one frame of values, without the interpreter's frames between them.

Rows of nodes run by their plans, branches and loops that no plan takes as steps that hold flows of their own, all else as a
call of the op. A frame is a list with a place for each
value of the graph, blocks within blocks too, so a flow may run in several threads.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject

cdef extern from "Python.h":
    object PyObject_Vectorcall(object callable, PyObject **args, size_t n, PyObject *names)
    PyObject *PyList_GET_ITEM(object l, Py_ssize_t i)

cdef enum:
    FEW = 16                # arguments of a call that stand on the stack
    MOST = 256              # values that a row reads, which stand on the stack of a call


cdef class Place:
    """Stands for a value in the arguments of a step. Attributes: at, its number in the frame."""

    cdef readonly int at

    def __init__(self, at):
        self.at = at


cdef object read(object a, list frame):
    """An argument with values in the place of Places."""
    if type(a) is Place:
        return frame[(<Place>a).at]
    if type(a) is tuple:
        return [read(x, frame) for x in <tuple>a]
    if type(a) is slice:
        return slice(read(a.start, frame), read(a.stop, frame), read(a.step, frame))
    return a


cdef class Step:
    """Attributes: node, the first of the nodes that it does; to, numbers of the values that it makes."""

    cdef readonly object node
    cdef readonly list to

    def __init__(self, node, to):
        self.node, self.to = node, to

    cdef int run(self, list frame) except -1:
        raise NotImplementedError

    cdef int put(self, list frame, results) except -1:
        cdef Py_ssize_t i = 0
        for result in results:
            if i == len(self.to):
                break               # more than the graph names
            frame[<int>self.to[i]] = result
            i += 1
        return 0


cdef class RowStep(Step):
    """A row of nodes, by its plans."""

    cdef object runner
    cdef int count
    cdef int places[MOST]

    def __init__(self, node, to, runner, places):
        super().__init__(node, to)
        self.runner, self.count = runner, len(places)
        if self.count > MOST:
            raise ValueError(f"a row reads {self.count} values, at most {MOST} are possible")
        for i, at in enumerate(places):
            self.places[<int>i] = at

    cdef int run(self, list frame) except -1:
        cdef PyObject *args[MOST]
        cdef int i
        for i in range(self.count):
            args[i] = PyList_GET_ITEM(frame, self.places[i])
        return self.put(frame, PyObject_Vectorcall(self.runner, args, self.count, NULL))


cdef class CallStep(Step):
    """A function, of a primitive or an op. several: it returns a sequence of what is made."""

    cdef object function
    cdef tuple args
    cdef bint several

    def __init__(self, node, to, function, args, several):
        super().__init__(node, to)
        self.function, self.args, self.several = function, args, several

    cdef int run(self, list frame) except -1:
        cdef PyObject *args[FEW]
        cdef list held
        cdef Py_ssize_t i, n = len(self.args)
        if n > FEW:
            result = self.function(*[read(a, frame) for a in self.args])
        else:
            held = [read(a, frame) for a in self.args]
            for i in range(n):
                args[i] = PyList_GET_ITEM(held, i)
            result = PyObject_Vectorcall(self.function, args, n, NULL)
        if self.several:
            return self.put(frame, result)
        if self.to:
            frame[<int>self.to[0]] = result
        return 0


cdef class IfStep(Step):
    cdef object condition
    cdef Flow first
    cdef Flow second

    def __init__(self, node, to, condition, first, second):
        super().__init__(node, to)
        self.condition, self.first, self.second = condition, first, second

    cdef int run(self, list frame) except -1:
        cdef Flow chosen = self.first if read(self.condition, frame) else self.second
        chosen.go(frame)
        return self.put(frame, [read(a, frame) for a in chosen.yields])


cdef class LoopStep(Step):
    """inputs: places of the number of the turn and of what is carried; starts: of the count, of whether to begin, and of
    what is carried."""

    cdef tuple starts
    cdef list inputs
    cdef Flow body

    def __init__(self, node, to, starts, inputs, body):
        super().__init__(node, to)
        self.starts, self.inputs, self.body = starts, inputs, body

    cdef int run(self, list frame) except -1:
        cdef list carried = [read(a, frame) for a in self.starts]
        cdef object count = carried[0]
        cdef bint goes_on = carried[1]
        cdef long long turn = 0, turns = -1 if count is None else max(count, 0)
        cdef Py_ssize_t i, n = len(self.inputs)
        while goes_on and turn != turns:
            frame[<int>self.inputs[0]] = turn
            for i in range(1, n):
                frame[<int>self.inputs[i]] = carried[i + 1]
            self.body.go(frame)
            PyErr_CheckSignals()
            for i in range(n):
                carried[i + 1] = read(self.body.yields[i], frame)
            goes_on = carried[1]
            turn += 1
        for i in range(1, n):
            frame[<int>self.to[i - 1]] = carried[i + 1]
        return 0


class Parted(Exception):
    """A step has not run: it has become several."""

    def __init__(self, steps):
        self.steps = steps


cdef class Flow:
    """The steps of a block.

    Attributes:
        steps: as they are now; a run goes on with those that it began with.
        yields: what the block gives, Places and constants.
        failed: failed(node, error) raises an error of a step, or another in its place.
    """

    cdef public list steps
    cdef public list yields
    cdef object failed

    def __init__(self, failed):
        self.steps, self.yields, self.failed = [], [], failed

    cpdef int go(self, list frame) except -1:
        """Run the steps on a frame."""
        cdef list steps = self.steps
        cdef Step step
        cdef Py_ssize_t i = 0
        while i < len(steps):
            step = <Step>steps[i]
            try:
                step.run(frame)
            except Parted as parts:
                steps = [*steps[:i], *parts.steps, *steps[i + 1:]]
                continue
            except Exception as error:
                self.failed(step.node, error)
                raise
            i += 1
        return 0

    def results(self, list frame):
        """What the block yields, in a frame that it has run on."""
        return tuple([read(a, frame) for a in self.yields])
