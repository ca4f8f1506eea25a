# Stacks (kernels/stacks.h): what is pushed, and where it lies in a row. Part of lowering.pyx.

cdef enum:
    POPPED = 1 << 30        # a base that no call sets: memory of a row
    ROW_HEAD = 16           # bytes before what is pushed: the number of the row before


def taken_stack(Lowering self not None, Stack stack not None):
    """What stands for a stack that is passed in."""
    return Stacked(self.number(0), None if stack.pile is None else _taken_heap(self, stack.pile))


cdef Heap _taken_heap(Lowering self, Pile pile):
    cdef Heap made
    inner = [_taken_heap(self, <Pile>p) for p in pile.inner]
    made = Heap(<int>len(self.heaps), pile.form, inner, True)
    self.heaps.append(made)
    return made


def push(Lowering self not None, Stacked stack not None, list values):
    """The stack with values on it."""
    cdef tgx_row *row = <tgx_row *>self.room.take(sizeof(tgx_row))
    cdef Step step = Step("push", self.node, "push")
    cdef _Keeping keeping = _Keeping(self, step)
    cdef Heap heap
    cdef Number made
    cdef Tensor t
    cdef int i
    parts = tuple([keeping.part(v) for v in values])
    heap = _heap_for(self, Form(parts, (keeping.nbytes + 63) & ~63, [h.form for h in keeping.inner]), keeping.inner)
    if stack.heap is not None and stack.heap is not heap:
        raise NotPlanned("what is pushed has other sizes than what was pushed before")
    row.pile, row.nnumbers, row.nparts = heap.number, <int>len(keeping.numbers), <int>len(keeping.tensors)
    row.numbers = <tgx_row_number *>self.room.take(row.nnumbers * sizeof(tgx_row_number) + 8)
    row.parts = <tgx_row_part *>self.room.take(row.nparts * sizeof(tgx_row_part) + 8)
    step.numbers, step.heap = [n for n, _ in keeping.numbers], heap
    for i, (number, offset) in enumerate(keeping.numbers):
        row.numbers[i].slot, row.numbers[i].offset = self.register(step, number), offset
        row.numbers[i].size = _size_of(kind_of((<Number>number).value))
    for i, (tensor, offset, nbytes) in enumerate(keeping.tensors):
        t = <Tensor>tensor
        row.parts[i].offset, row.parts[i].bytes = offset, nbytes
        self.fix(<char **>&row.parts[i].data, t)
        step.reads.append((buffer_of(t), False))
    made = self.number(0)
    _row_step(self, step, TGX_CODE_PUSH, row, stack, made)
    return Stacked(made, heap)


def pop(Lowering self not None, Stacked stack not None):
    """[the stack without its last row, what that held]."""
    cdef tgx_row *row = <tgx_row *>self.room.take(sizeof(tgx_row))
    cdef Step step = Step("pop", self.node, "pop")
    cdef Number made = self.number(0)
    cdef int i
    step.heap, step.effect = stack.heap, True
    found = []
    values = [_popped(self, step, stack.heap, part, found) for part in stack.heap.form.parts]
    row.pile, row.nnumbers = stack.heap.number, <int>len(found)
    row.numbers = <tgx_row_number *>self.room.take(row.nnumbers * sizeof(tgx_row_number) + 8)
    for i, (number, offset) in enumerate(found):
        row.numbers[i].slot, row.numbers[i].offset = (<Number>number).slot, offset
        row.numbers[i].size = _size_of(kind_of((<Number>number).value))
        step.writes += (<Number>number).after
    _row_step(self, step, TGX_CODE_POP, row, stack, made)
    return [Stacked(made, stack.heap), *values]


cdef int _row_step(Lowering self, Step step, int code, tgx_row *row, Stacked stack, Number made) except -1:
    step.opcode, step.a = code, self.register(step, stack.number)
    step.out, step.b = made.slot, <int>len(self.rows)
    made.after = [_mark()]
    step.writes += made.after
    self.rows.append(<size_t>row)
    self.steps.append(step)
    return 0


cdef Heap _heap_for(Lowering self, Form form, list inner):
    """The rows of one form that a plan makes lie together."""
    cdef Heap heap
    for o in self.heaps:
        heap = <Heap>o
        if not heap.given and heap.form.key == form.key and len(heap.inner) == len(inner):
            if all([a is b for a, b in zip(heap.inner, inner)]):
                return heap
    heap = Heap(<int>len(self.heaps), form, inner, False)
    self.heaps.append(heap)
    return heap


cdef int _size_of(int kind) noexcept:
    return 16 if kind == TGX_KIND_COMPLEX else 8


cdef class _Keeping:
    """Finds places in a row for what is pushed."""

    cdef Lowering low
    cdef Step step
    cdef int64_t nbytes
    cdef list numbers               # (Number, offset)
    cdef list tensors               # (Tensor, offset, bytes)
    cdef list inner                 # Heaps

    def __init__(self, low, step):
        self.low, self.step, self.nbytes = low, step, ROW_HEAD
        self.numbers, self.tensors, self.inner = [], [], []

    cdef int64_t _take(self, int64_t nbytes) except -1:
        cdef int64_t at
        self.nbytes = (self.nbytes + 15) & ~<int64_t>15 if nbytes > 8 else self.nbytes
        self.nbytes = (self.nbytes + 63) & ~<int64_t>63 if nbytes > 128 else self.nbytes
        at = self.nbytes
        if nbytes > <int64_t>1 << 46 or at > <int64_t>1 << 46:
            raise NotPlanned("a turn keeps more than there is memory")
        self.nbytes += (nbytes + 7) & ~<int64_t>7
        return at

    cdef tuple part(self, object o):
        if isinstance(o, Tensor):
            return self._tensor(<Tensor>o)
        if isinstance(o, Number):
            return "number", kind_of((<Number>o).value), self._number(o, kind_of((<Number>o).value))
        if isinstance(o, Stacked):
            return self._stack(<Stacked>o)
        if type(o) is list or type(o) is tuple:
            return type(o).__name__, tuple([self.part(x) for x in o])
        if o is None or isinstance(o, (bool, int, float, complex, str)):
            return "value", o
        raise NotPlanned(f"a {type(o).__name__} is pushed")

    cdef int64_t _number(self, object o, int kind) except -1:
        cdef int64_t at = self._take(_size_of(kind))
        self.numbers.append((o, at))
        return at

    cdef tuple _stack(self, Stacked o):
        if o.heap is None:
            return "stack", None, self._number(o.number if isinstance(o.number, Number) else self._constant(o.number), TGX_KIND_INT)
        number = o.number if isinstance(o.number, Number) else self._constant(o.number)
        if o.heap not in self.inner:
            self.inner.append(o.heap)
        return "stack", self.inner.index(o.heap), self._number(number, TGX_KIND_INT)

    cdef object _constant(self, object number):
        """A Number that is this one."""
        self.low.register(self.step, number)
        return self.low.constants[type(number), repr(number)]

    cdef tuple _tensor(self, Tensor t):
        """All that lies between its first and its last element is kept, so that it has its strides again."""
        cdef int64_t nbytes = reach(t.sizes, t.strides, t.rank, 0, ITEMSIZE[t.tid], ANY_ROOM, "plan")
        cdef int64_t at
        if nbytes > 2 * t.count * ITEMSIZE[t.tid]:
            raise NotPlanned("a part of a tensor is pushed whose elements lie far from each other")
        at = self._take(nbytes)
        if nbytes:
            self.tensors.append((t, at, nbytes))
        sizes = tuple([t.sizes[i] for i in range(t.rank)])
        return "tensor", t.tid, sizes, tuple([t.strides[i] for i in range(t.rank)]), at, nbytes


cdef object _popped(Lowering self, Step step, Heap heap, tuple part, list found):
    """What stands for a part of a row. found: (Number, offset) for all numbers."""
    cdef Number number
    what = part[0]
    if what == "tensor":
        return _popped_tensor(self, step, part)
    if what == "value":
        return part[1]
    if what == "list" or what == "tuple":
        made = [_popped(self, step, heap, p, found) for p in part[1]]
        return made if what == "list" else tuple(made)
    number = self.number(0 if what == "stack" else _OF_KIND[part[1]])
    number.after = [_mark()]
    found.append((number, part[2]))
    if what == "number":
        return number
    return Stacked(number, None if part[1] is None else heap.inner[part[1]])


cdef Tensor _popped_tensor(Lowering self, Step step, tuple part):
    cdef int64_t sizes[64]
    cdef int64_t strides[64]
    cdef int i, rank = <int>len(part[2])
    cdef Tensor made
    for i in range(rank):
        sizes[i], strides[i] = part[2][i], part[3][i]
    made = self.made(empty_strided(sizes, strides, rank, part[1], META))
    buffer_of(made).base, buffer_of(made).row = POPPED, <int>len(self.rows) + 1
    buffer_of(made).offset = part[4]
    step.writes.append(buffer_of(made))
    return made


_OF_KIND = {TGX_KIND_INT: 1, TGX_KIND_FLOAT: 1.0, TGX_KIND_BOOL: True, TGX_KIND_COMPLEX: 1j}
