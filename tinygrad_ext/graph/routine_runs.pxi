# Runs of a group that become machine code: which values they read and write in memory. Part of routine.pyx.

cdef int _lay_out(Routine self) except -1:
    """Instructions for the items. Where the system refuses memory for machine code, they are laid out without."""
    cdef Py_ssize_t mark = len(self.fixups)
    self.code = Code() if level() else None
    if self._laid() and (self.code is None or self.code.close()):
        return 0
    del self.fixups[mark:]
    self.code = None
    for item in self.items:
        if isinstance(item, Group):
            item.runs = []
    self._laid()
    return 0


cdef class Run:
    """Steps [begin, end) of a group as the emitter wants them: rows of numbers of values."""

    cdef Layout layout
    cdef int begin, end
    cdef dict number                # id of a tensor, constant or buffer -> number of its value
    cdef list values                # (dtype, repeated, operand or -1)
    cdef list rows

    def __init__(self, Layout layout, int begin, int end, list steps):
        self.layout, self.begin, self.end = layout, begin, end
        self.number, self.values, self.rows = {}, [], []
        for step in steps:
            row = [self._read(o, (<Step>step).dtype) for o in (<Step>step).operands[1:]]
            self.rows.append([self._written((<Step>step).operands[0]), *row])

    cdef int _value(self, object key, int dtype, bint repeated, int operand) except -1:
        self.number[key] = len(self.values)
        self.values.append((dtype, repeated, operand))
        return len(self.values) - 1

    cdef int _read(self, object o, int dtype) except -1:
        cdef int at
        if isinstance(o, Constant):
            return self._value(id(o), dtype, True, self.layout._read(o))
        key = id(buffer_of(<Tensor>o))
        if key not in self.number:
            key = key if buffer_of(<Tensor>o).local else id(o)
        if key in self.number:
            return self.number[key]
        at = self.layout._read(o)
        return self._value(key, (<Tensor>o).tid, self.layout.repeats(at), at)

    cdef int _written(self, Tensor t) except -1:
        """What is read in the run alone has no place outside it."""
        cdef Buffer b = buffer_of(t)
        cdef bint inner = b.local and self.layout.last[id(b)] < self.end
        return self._value(id(b), t.tid, False, -1 if inner else self.layout._written(t))
