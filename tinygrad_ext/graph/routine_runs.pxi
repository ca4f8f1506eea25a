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
    """Steps of a group, up to `end`, as the emitter wants them."""

    cdef Layout layout
    cdef int end, nvalues
    cdef tgx_emit_step *steps
    cdef tgx_emit_value *values
    cdef dict number                # id of a tensor in memory -> number of its value

    cdef int fill(self, Layout layout, int end, list steps) except -1:
        cdef tgx_emit_step *to
        cdef Step step
        cdef int i, k, count = 0
        self.layout, self.end, self.number = layout, end, {}
        for s in steps:
            count += <int>len((<Step>s).operands)
            for o in (<Step>s).operands:
                if isinstance(o, Tensor):
                    buffer_of(<Tensor>o).value = 0
        self.steps = <tgx_emit_step *>layout.room.take(len(steps) * sizeof(tgx_emit_step))
        self.values = <tgx_emit_value *>layout.room.take(count * sizeof(tgx_emit_value))
        for i in range(<int>len(steps)):
            step, to = <Step>steps[i], &self.steps[i]
            to.formula, to.aux, to.varying = <const tgx_formula *>step.formula, step.aux, step.varying
            to.dtype, to.n = step.dtype, <int8_t>len(step.operands)
            for k in range(1, to.n):
                to.value[k] = self._read(step.operands[k], step.dtype)
            to.value[0] = self._written(<Tensor>step.operands[0])
        return 0

    cdef int _value(self, int dtype, bint repeated, int operand) except -1:
        cdef tgx_emit_value *v = &self.values[self.nvalues]
        v.dtype, v.repeated, v.operand = dtype, repeated, operand
        self.nvalues += 1
        return self.nvalues - 1

    cdef int _read(self, object o, int dtype) except -1:
        cdef Buffer b
        cdef int at
        if isinstance(o, Constant):
            return self._value(dtype, True, self.layout._read(o))
        b = buffer_of(<Tensor>o)
        if b.value:
            return b.value - 1
        if b.local:                 # of a step before the run
            b.value = 1 + self._value((<Tensor>o).tid, False, self.layout._read(o))
            return b.value - 1
        found = self.number.get(id(o))
        if found is None:
            at = self.layout._read(o)
            found = self.number[id(o)] = self._value((<Tensor>o).tid, self.layout.repeats(at), at)
        return found

    cdef int _written(self, Tensor t) except -1:
        """What is read in the run alone has no place outside it."""
        cdef Buffer b = buffer_of(t)
        cdef bint inner = b.local and <int>self.layout.last[id(b)] < self.end
        b.value = 1 + self._value(t.tid, False, -1 if inner else self.layout._written(t))
        return b.value - 1
