# The program of a plan: the order of its instructions, and what is done with numbers between them. Part of routine.pyx.

cdef bint _set_program(Routine self, lowering) except -1:
    """Write the program, if one is needed; returns whether it has loops."""
    cdef tgx_code *c
    cdef Step step
    cdef int label, at = 0, instruction = 0
    cdef Py_ssize_t count
    cdef bint loops = False
    cdef dict labels = {}
    self.plan.numbers = <tgx_number *>self.room.take(lowering.nslots * sizeof(tgx_number) + 8)
    for number in lowering.constants.values():
        _take_number(&self.plan.numbers[(<Number>number).slot], kind_of((<Number>number).value), (<Number>number).value)
    for item in self.items:
        if type(item) is Group and (<Group>item).key is not None:
            continue
        if type(item) is Group and (<Group>item).steps or type(item) is Step and (<Step>item).code == "control":
            break
    else:
        return False
    count = 1 + sum([len(item.steps) if type(item) is Group else 1 for item in self.items])
    self.plan.program = c = <tgx_code *>self.room.take(count * sizeof(tgx_code))
    self.plan.places = <tgx_cell **>_pointers(self, lowering.places)
    self.plan.windows = <tgx_window **>_pointers(self, lowering.windows)
    self.plan.call, self.plan.context = _call, <void *>self
    for item in self.items:
        if _is_instruction(item):
            c[at].code, c[at].a = TGX_CODE_STEP, instruction
            instruction += 1
            at += 1
            continue
        for s in item.steps if type(item) is Group else (item,):
            step = <Step>s
            if step.code == "control" and not step.opcode:
                labels[step.b] = at
                loops |= step.which > 0
                continue
            c[at].code, c[at].which, c[at].to, c[at].a, c[at].b = step.opcode, step.which, step.out, step.a, step.b
            at += 1
    c[at].code = TGX_CODE_END
    for label in range(at):
        if c[label].code in (TGX_CODE_JUMP, TGX_CODE_UNLESS, TGX_CODE_NEXT):
            c[label].b = labels[c[label].b]
    return loops


cdef void *_pointers(Routine self, list addresses) except NULL:
    cdef void **made = <void **>self.room.take(len(addresses) * sizeof(void *) + 8)
    cdef int i
    for i, address in enumerate(addresses):
        made[i] = <void *><size_t>address
    return made


cdef bint _take_number(tgx_number *to, int kind, object value) except -1:
    """Whether a register can hold a number."""
    cdef int overflow = 0
    if kind == TGX_KIND_FLOAT:
        to.f = value
    elif kind == TGX_KIND_COMPLEX:
        to.f, to.im = value.real, value.imag
    else:
        to.i = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0


cdef object _number(tgx_number *n, int kind):
    if kind == TGX_KIND_INT:
        return n.i
    if kind == TGX_KIND_FLOAT:
        return n.f
    return n.i != 0 if kind == TGX_KIND_BOOL else complex(n.f, n.im)


cdef int _called(Routine self, int which) except -1:
    cdef Number to
    function, given, to = self.calls[which]
    found = function(*[_given(self, a) for a in given])
    if type(found) is not type(to.value) or not _take_number(&self.plan.numbers[to.slot], kind_of(found), found):
        raise TypeError("a number is of another type than the plan was made for")
    return 0


cdef object _given(Routine self, object a):
    return _number(&self.plan.numbers[(<Number>a).slot], kind_of((<Number>a).value)) if isinstance(a, Number) else a


cdef int _call(void *context, int which) noexcept nogil:
    with gil:
        try:
            return _called(<Routine>context, which)
        except Exception:
            return TGX_BAD_VALUE            # the interpreter says it better


cdef bint _is_instruction(object item) except -1:
    """Whether C runs it as an instruction of the plan; the rest is program."""
    if type(item) is Group:
        return (<Group>item).key is not None
    return (<Step>item).code != "number" and (<Step>item).code != "control"


cdef str _kind_of(object item):
    if type(item) is Group:
        return "NUMBER" if (<Group>item).key is None else "TILE"
    if (<Step>item).code != "control":
        return (<Step>item).code.upper()
    return (<Step>item).op.removeprefix("prim::").upper()
