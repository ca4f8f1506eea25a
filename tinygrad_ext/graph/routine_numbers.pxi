# The program of a plan: the order of its instructions, and what is done with numbers between them. Part of routine.pyx.

cdef bint _set_program(Routine self, lowering, outputs) except -1:
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
        if type(item) is Group and (<Group>item).steps or not _is_instruction(item) and type(item) is Step:
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
            c[at].code, c[at].a = _code_of(&self.plan.instructions[instruction]), instruction
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
    read = [lowering.calls, outputs, *[s.numbers for s in self.items if type(s) is Step and (<Step>s).code == "push"]]
    _without_moves(self, c, at, labels, [n.slot for n in numbers_in(read)])
    return loops


cdef int _code_of(tgx_instruction *i) noexcept:
    if i.code == TGX_PLAN_RAW:
        return TGX_CODE_RAW
    return TGX_CODE_SMALL if i.code == TGX_PLAN_SMALL else TGX_CODE_STEP


cdef enum:
    SHORT = 64                      # operations between a result and its move that are looked through


cdef int _without_moves(Routine self, tgx_code *c, int count, dict labels, read) except -1:
    """Let what is computed only to be moved be computed where it is moved to, and what is compared only for a jump be compared
    by that; then set the targets of jumps. read: registers that others read than operations.
    """
    cdef int i, k, slot
    cdef list uses = [0] * (self.nregisters + 1), places = []
    cdef list writes = [[] for _ in range(self.nregisters + 1)]
    for i in range(count):
        if _jumps(&c[i]):
            c[i].b = labels[c[i].b]
    targets = {c[i].b for i in range(count) if _jumps(&c[i])}
    for slot in read:
        uses[slot] += 1
    for i in range(count):
        writes[c[i].to].append(i)
        for slot in (c[i].a, -1 if _jumps(&c[i]) else c[i].b):
            if 0 <= slot <= self.nregisters:        # places may look like registers: then a move stays
                uses[slot] += 1
    for i in range(count):
        if c[i].code == TGX_CODE_MOVE and uses[c[i].a] == 1 and c[i].a != c[i].to and writes[c[i].a]:
            if all([i - SHORT < k < i and _only_moved(c, k, i, targets) for k in writes[c[i].a]]):
                for k in writes[c[i].a]:
                    c[k].to = c[i].to
                writes[c[i].to] += writes[c[i].a]
                c[i].code = TGX_CODE_NONE
        elif c[i].code == TGX_CODE_UNLESS and i and i not in targets and uses[c[i].a] == 1 and c[i - 1].to == c[i].a:
            k = _comparison(c[i - 1].code)
            if k >= 0:
                c[i].code, c[i].to, c[i].a, c[i].b = TGX_CODE_UNLESS_LT + k, c[i].b, c[i - 1].a, c[i - 1].b
                c[i - 1].code = TGX_CODE_NONE
    k = 0
    for i in range(count + 1):
        places.append(k)
        if c[i].code != TGX_CODE_NONE:
            c[k] = c[i]
            k += 1
    for i in range(k):
        if _jumps(&c[i]):
            c[i].b = places[c[i].b]
        elif c[i].code >= TGX_CODE_UNLESS_LT:
            c[i].to = places[c[i].to]
    return 0


cdef int _comparison(int code) noexcept:
    """Which comparison an operation is, in the order of TGX_CODE_UNLESS_LT; -1: none."""
    if TGX_CODE_LT <= code <= TGX_CODE_NE:
        return code - TGX_CODE_LT
    return code - TGX_CODE_FLT + 4 if TGX_CODE_FLT <= code <= TGX_CODE_FNE else -1


_MAKES = (TGX_CODE_LOAD, TGX_CODE_PUSH, TGX_CODE_POP)
_READS_MORE = (TGX_CODE_CALL, TGX_CODE_PUSH, TGX_CODE_POP)      # registers, or sets them, than stand in the operation


cdef bint _only_moved(tgx_code *c, int k, int i, targets) except -1:
    """Whether what operation k computes can stand from then on where operation i moves it: nobody looks there between."""
    cdef int at, slot = c[i].to
    if c[k].code < TGX_CODE_MOVE and c[k].code not in _MAKES or c[k].code >= TGX_CODE_UNLESS_LT:
        return False
    at = k + 1
    while at < i:
        if c[at].code == TGX_CODE_JUMP and at < c[at].b <= i:
            at = c[at].b                # the other branch
            continue
        if _jumps(&c[at]) or c[at].code >= TGX_CODE_UNLESS_LT or c[at].code in _READS_MORE:
            return False
        if c[at].code != TGX_CODE_NONE and (c[at].to == slot or c[at].a == slot or c[at].b == slot):
            if not TGX_CODE_STEP <= c[at].code <= TGX_CODE_SMALL:
                return False
        at += 1
    return at == i


cdef inline bint _jumps(tgx_code *c) noexcept:
    return c.code == TGX_CODE_JUMP or c.code == TGX_CODE_UNLESS or c.code == TGX_CODE_NEXT


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


cdef int _called(Routine self, int which) except -1:
    cdef Number to
    function, given, to = self.calls[which]
    found = function(*[_given(self, a) for a in given])
    if type(found) is not type(to.value) or not _take_number(&self.plan.numbers[to.slot], kind_of(found), found):
        raise TypeError("a number is of another type than the plan was made for")
    return 0


cdef object _given(Routine self, object a):
    return number_of(&self.plan.numbers[(<Number>a).slot], kind_of((<Number>a).value)) if isinstance(a, Number) else a


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
    return (<Step>item).code not in ("number", "control", "push", "pop")


cdef str _kind_of(object item):
    if type(item) is Group:
        return "NUMBER" if (<Group>item).key is None else "TILE"
    if (<Step>item).code != "control":
        return (<Step>item).code.upper()
    return (<Step>item).op.removeprefix("prim::").upper()
