# Numbers that are known while a plan runs, and the way that it takes. Part of lowering.pyx.

# codes of kernels/program.h
CODES = {
    "call": TGX_CODE_CALL, "fail": TGX_CODE_FAIL, "jump": TGX_CODE_JUMP, "unless": TGX_CODE_UNLESS,
    "next": TGX_CODE_NEXT, "load": TGX_CODE_LOAD, "put": TGX_CODE_PUT, "window": TGX_CODE_WINDOW,
    "move": TGX_CODE_MOVE, "add": TGX_CODE_ADD, "sub": TGX_CODE_SUB, "mul": TGX_CODE_MUL,
    "floordiv": TGX_CODE_FLOORDIV, "mod": TGX_CODE_MOD, "pow": TGX_CODE_POW, "neg": TGX_CODE_NEG, "abs": TGX_CODE_ABS,
    "max": TGX_CODE_MAX, "min": TGX_CODE_MIN, "and": TGX_CODE_AND, "or": TGX_CODE_OR, "xor": TGX_CODE_XOR,
    "lshift": TGX_CODE_LSHIFT, "rshift": TGX_CODE_RSHIFT, "invert": TGX_CODE_INVERT, "lt": TGX_CODE_LT,
    "le": TGX_CODE_LE, "eq": TGX_CODE_EQ, "ne": TGX_CODE_NE, "truediv": TGX_CODE_TRUEDIV, "fadd": TGX_CODE_FADD,
    "fsub": TGX_CODE_FSUB, "fmul": TGX_CODE_FMUL, "fdiv": TGX_CODE_FDIV, "ffloordiv": TGX_CODE_FFLOORDIV,
    "fmod": TGX_CODE_FMOD, "fpow": TGX_CODE_FPOW, "fneg": TGX_CODE_FNEG, "fabs": TGX_CODE_FABS, "fmax": TGX_CODE_FMAX,
    "fmin": TGX_CODE_FMIN, "flt": TGX_CODE_FLT, "fle": TGX_CODE_FLE, "feq": TGX_CODE_FEQ, "fne": TGX_CODE_FNE,
    "floor": TGX_CODE_FLOOR, "ceil": TGX_CODE_CEIL, "round": TGX_CODE_ROUND, "math": TGX_CODE_MATH,
    "isnan": TGX_CODE_ISNAN, "isinf": TGX_CODE_ISINF, "isfinite": TGX_CODE_ISFINITE, "float": TGX_CODE_FLOAT,
    "exact": TGX_CODE_EXACT, "int": TGX_CODE_INT, "truth": TGX_CODE_TRUTH, "ftruth": TGX_CODE_FTRUTH,
    "not": TGX_CODE_NOT,
}
LABEL = 0                       # a control step that marks a place, where a loop begins or ends
# what may raise in Python is done though nobody reads it
_MAY_RAISE = {CODES[code] for code in (
    "floordiv", "mod", "truediv", "pow", "lshift", "rshift", "ffloordiv", "fmod", "fdiv", "fpow", "math", "int", "floor", "ceil",
    "round", "window", "call",
)}
_SEEN = {int: 1, float: 1.0, bool: True, complex: 1j}


cdef class Recording:
    """Steps that compute with numbers, jump, and keep what is carried from trip to trip.

    Steps with numbers may run as early as what they read is known; a control step parts all that stands before it from what
    stands behind.
    """

    def say(self, int first, node, args):
        """Note on the steps from number `first` on, unless an inner node has, which node they come from."""
        cdef Py_ssize_t i
        cdef object said = (node, args)
        for i in range(first, len(self.steps)):
            if (<Step>self.steps[i]).said is None:
                (<Step>self.steps[i]).said = said

    def number(self, value):
        """A register for a number like this one."""
        self.nslots += 1
        return Number(self.nslots - 1, value)

    def slot(self, like):
        """A register for numbers like this one that is filled by `move`."""
        made = self.number(like.value if isinstance(like, Number) else like)
        made.after = [_mark()]
        return made

    def compute(self, str code, kind, a=None, b=None, int which=0, str name=""):
        """A number of a kind (int, float, bool, complex) that an operation of program.h makes of others."""
        made = self.number(_SEEN[kind])
        self._computed(CODES[code], made, [a, b], name or code).which = which
        return made

    def called(self, function, tuple args, kind):
        """A number that a function of Python makes of others."""
        made = self.number(_SEEN[kind])
        step = self._computed(CODES["call"], made, [], getattr(function, "__name__", "call"))
        step.a = <int>len(self.calls)
        for n in numbers_in(args):
            self._waits(step, n)
        self.calls.append((function, args, made))
        return made

    cdef Step _computed(self, int code, Number made, list operands, str name):
        cdef Step step = Step("number", self.node, name)
        cdef list found = [0 if o is None else self.register(step, o) for o in operands]
        step.opcode, step.effect = code, code in _MAY_RAISE
        if made is not None:
            step.out = made.slot
            if not made.after:
                made.after = [_mark()]
            step.writes += made.after
        if found:
            step.a, step.b = found
        self.steps.append(step)
        return step

    cdef int register(self, Step step, object o) except -1:
        """Where a number lies that a step reads."""
        if isinstance(o, Number):
            self._waits(step, o)
            return (<Number>o).slot
        key = type(o), repr(o)
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = self.number(o)
        return (<Number>found).slot

    cdef int _waits(self, Step step, Number number) except -1:
        """Let a step run after a number is known: at once, if it is one with numbers."""
        for mark in number.after:
            step.reads.append((mark, step.code == "number"))
        return 0

    cdef int put(self, Step step, Number number, void *where, int dtype) except -1:
        """Let a number stand in memory when a step runs."""
        cdef Step putting = Step("number", self.node, "put")
        cdef tgx_cell *place = <tgx_cell *>self.room.take(sizeof(tgx_cell))
        place.data, place.dtype, place.kind = <char *>where, dtype, kind_of(number.value)
        putting.opcode, putting.b, putting.a = TGX_CODE_PUT, self.register(putting, number), <int>len(self.places)
        self.places.append(<size_t>place)
        mark = _mark()
        putting.writes.append(mark)
        step.reads.append((mark, False))
        self.steps.append(putting)
        return 0

    # ---- the way

    def label(self):
        self.nlabels += 1
        return self.nlabels - 1

    def control(self, int code, a=None, to=None, label=0, str name="", int loop=0):
        """A step that all before it comes before. loop: where one begins, its number; where it ends, that less than zero."""
        cdef Step step = Step("control", self.node, name)
        step.opcode, step.b, step.which = code, label, loop
        step.changes = step.effect = True
        if a is not None:
            step.a = self.register(step, a)
        if to is not None:
            step.out = self.register(step, to)
        self.steps.append(step)

    def place_label(self, label, str name="", int loop=0):
        self.control(LABEL, label=label, name=name, loop=loop)

    def barrier(self):
        self.place_label(self.label())

    def next_loop(self):
        self.nloops += 1
        return self.nloops

    def move(self, Number to not None, o):
        """Let a register that others read have another number."""
        cdef Step step = self._computed(TGX_CODE_MOVE, to, [o, None], "move")
        step.effect = True


cdef inline Buffer _mark():
    cdef Buffer b = Buffer(0)
    b.mark = True
    return b


cdef int kind_of(object value) except -1:
    if type(value) is bool:
        return TGX_KIND_BOOL
    if type(value) is int:
        return TGX_KIND_INT
    return TGX_KIND_COMPLEX if type(value) is complex else TGX_KIND_FLOAT


cdef int _look_at_numbers(Op op, list args, int dtype) except -1:
    """Numbers that the computing dtype may not hold are looked at in each call, which refuses such a one."""
    cdef int i
    cdef bint narrow = not fits(<int64_t>1 << 62, dtype)
    for i in range(op.nscalars if narrow else 0):
        if isinstance(args[op.scalars[i]], Number):
            raise ByValue(*numbers_in(args))
    for i in range(op.ntensors if narrow and op.refuses is not None and "outside" in op.refuses else 0):
        o = args[op.tensors[i]]
        if isinstance(o, Number):
            raise ByValue(*numbers_in(args))
        if type(o) is int and not fits(as_scalar(o).i, dtype):
            raise NotPlanned(f"{op.name} refuses a number")
    return 0


cdef bint _has_wide_number(Op op, list args, int dtype):
    """Whether the second operand beside halves is a tensor without dimensions that is a number of float32, as in eager mode."""
    if not is_half(dtype) or loop_by_number(op, dtype) == NULL or not isinstance(args[0], Tensor) or not isinstance(args[1], Tensor):
        return False
    return (<Tensor>args[1]).rank == 0 and (<Tensor>args[1]).tid != dtype


cdef int _put_number(Lowering self, Step step, Op op, list args, Decision *d) except -1:
    """Let a number beside halves be the loop's scalar; how many operands are left."""
    if d.loop == op.loops[d.dtype]:
        return op.ntensors
    step.aux = <tgx_scalar *>self.room.take(sizeof(tgx_scalar))
    step.aux[0] = d.aux[0]
    if isinstance(args[op.tensors[1]], Number):
        self.put(step, args[op.tensors[1]], step.aux, -1)
        step.varying = 1
    return 1
