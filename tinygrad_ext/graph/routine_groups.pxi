# Groups of pointwise steps laid out: where their operands lie. Part of routine.pyx.

cdef enum:
    SMALL = 256             # elements of a small group
    SCRATCH = 4096          # bytes, for those of a plan


cdef char *_aligned(Room room, size_t nbytes) except NULL:
    return <char *>((<size_t>room.take(nbytes + TGX_LINE) + TGX_LINE - 1) & ~<size_t>(TGX_LINE - 1))


cdef class Layout:
    """Where the operands of a group lie. Registers are parts of the scratch, of one tile each."""

    cdef Room room
    cdef list fixups, dims
    cdef dict index, registers, last
    cdef dict free                  # size of an element -> registers: one of another size would be written too far
    cdef tgx_operand *operands
    cdef char **at                  # where they begin
    cdef int noperands, nregisters, width, rank
    cdef int64_t count
    cdef bint small

    def __init__(self, Room room, list fixups, key, int nvalues):
        sizes, strides = key
        self.room, self.fixups, self.rank = room, fixups, len(sizes)
        self.dims = sorted([d for d in range(len(sizes)) if sizes[d] != 1], key=lambda d: -strides[d])
        self.dims = [(d, sizes[d]) for d in self.dims]
        self.index, self.registers, self.last, self.free = {}, {}, {}, {}
        self.operands = <tgx_operand *>room.take(2 * nvalues * sizeof(tgx_operand))
        self.at = <char **>room.take(2 * nvalues * sizeof(char *))
        self.width, self.count = 1, 1
        for _, n in self.dims:
            self.count *= n

    cdef int begin(self, Group group) except -1:
        """Look for the last step that reads each value; bring in what lies in memory otherwise than the results do."""
        cdef Step step
        cdef set dense = {id(o) for i, k in group.runs for s in group.steps[i:k] for o in (<Step>s).operands
                          if isinstance(o, Tensor) and not buffer_of(<Tensor>o).local}
        for i, s in enumerate(group.steps):
            step = <Step>s
            self.last[id(step.writes[0])] = i
            for b, _ in step.reads:
                self.last[id(b)] = i
            for o in step.operands:
                if isinstance(o, Tensor) and not buffer_of(<Tensor>o).local and id(o) not in self.index:
                    self._memory(<Tensor>o, id(o) in dense)
        return 0

    cdef int _new(self, int itemsize, ptrdiff_t step, int scratch) except -1:
        cdef tgx_operand *o = &self.operands[self.noperands]
        o.size, o.step, o.scratch = itemsize, step, scratch
        self.noperands += 1
        return self.noperands - 1

    cdef int _memory(self, Tensor t, bint dense) except -1:
        """An operand in memory, read where it lies if one step leads from each element to the next; dense: if they lie side by
        side, or there is but one that is no truth."""
        cdef list merged = []
        cdef int64_t stride
        cdef int k, at, size = ITEMSIZE[t.tid]
        cdef char **where
        for d, n in self.dims:
            k = d - (self.rank - t.rank)
            stride = 0 if k < 0 or t.sizes[k] == 1 else t.strides[k] * size
            outer = merged.pop() if merged else None
            if outer is None or outer[1] != stride * n:
                merged += [(n, stride)] if outer is None else [outer, (n, stride)]
            else:
                merged.append((outer[0] * n, stride))
        at = self._new(size, merged[0][1] if merged else size, -1)
        where = &self.at[at]
        if len(merged) > 1 or dense and merged and merged[0][1] != size and (merged[0][1] or t.tid == TGX_BOOL):
            self._brought(at, merged)
            where = <char **>&self.operands[at].source
        self.index[id(t)] = at
        self.fixups.append((<size_t>where, t.storage.owner, <int64_t>(t.data - t.storage.data)))
        return at

    cdef int _brought(self, int at, list merged) except -1:
        cdef tgx_operand *o = &self.operands[at]
        cdef int i
        o.rank, o.scratch, o.step = len(merged), self.nregisters, o.size
        self.nregisters += 1
        self.width = max(self.width, o.size)
        o.sizes = <int64_t *>self.room.take(8 * o.rank)
        o.strides = <ptrdiff_t *>self.room.take(8 * o.rank)
        for i in range(o.rank):
            o.sizes[i], o.strides[i] = merged[i]
        return 0

    cdef int set_operands(self, int number, Step step, tgx_tile_op *op) except -1:
        cdef int k
        cdef Tensor result = <Tensor>step.operands[0]
        later = []
        for k in range(1, op.n):
            op.operand[k] = self._read(step.operands[k])
        for b, _ in step.reads:
            if (<Buffer>b).local and self.last[id(b)] == number and id(b) in self.registers:
                at, itemsize = self.registers.pop(id(b))
                if itemsize == ITEMSIZE[result.tid] and not step.apart:
                    self.free.setdefault(itemsize, []).append(at)
                else:
                    later.append((at, itemsize))
        op.operand[0] = self._written(result)
        for at, itemsize in later:
            self.free.setdefault(itemsize, []).append(at)
        return 0

    cdef bint set_run(self, int end, list steps, Code code, tgx_tile_op *op) except -1:
        """Let steps up to `end` be one piece of machine code; whether it could be written."""
        cdef Run run = Run.__new__(Run)
        run.fill(self, end, steps)
        for s in steps:                 # what it reads is free when all of it has run
            for b, _ in (<Step>s).reads:
                if (<Buffer>b).local and <int>self.last[id(b)] < end and id(b) in self.registers:
                    at, size = self.registers.pop(id(b))
                    self.free.setdefault(size, []).append(at)
        return code.run(run.steps, <int>len(steps), run.values, run.nvalues, &op.code)

    cdef bint repeats(self, int operand) noexcept:
        """Whether an operand is one element for all."""
        return self.operands[operand].step == 0 and self.operands[operand].scratch < 0

    cdef int _read(self, object o) except -1:
        cdef int at
        if isinstance(o, Constant):
            at = self._new((<Constant>o).size, 0, -1)
            self.at[at] = (<Constant>o).data
            return at
        if buffer_of(<Tensor>o).local:
            return self._register(self.registers[id(buffer_of(<Tensor>o))][0], ITEMSIZE[(<Tensor>o).tid])
        return self.index[id(o)]

    cdef int _written(self, Tensor t) except -1:
        cdef int at, size = ITEMSIZE[t.tid]
        if not buffer_of(t).local:
            return self.index[id(t)]
        if self.free.get(size):
            at = self.free[size].pop()
        else:
            at = self.nregisters
            self.nregisters += 1
        self.width = max(self.width, size)
        self.registers[id(buffer_of(t))] = at, size
        return self._register(at, size)

    cdef int _register(self, int number, int size) except -1:
        found = self.index.get((number, size))
        if found is None:
            found = self.index[number, size] = self._new(size, size, number)
        return found

    cdef int finish(self) except -1:
        """Elements of a tile; registers become places in the scratch. Beyond the last cache half a tile is quicker, by 7 %."""
        cdef int i, tile = 4096
        cdef int64_t place
        if self.count <= SMALL:
            tile = <int>self.count
            place = (max(self.count * self.width, TGX_LINE) + TGX_LINE - 1) & ~<int64_t>(TGX_LINE - 1)
            self.small = self.nregisters * place <= SCRATCH
            for i in range(self.noperands if self.small else 0):
                if self.operands[i].scratch >= 0:
                    self.operands[i].scratch *= <int>place
            if self.small:
                return tile
        if self.nregisters:
            tile = min(512 if self.count > FAR else 1024, TGX_TILE_SCRATCH // (self.nregisters * self.width)) & ~15
        for i in range(self.noperands):
            if self.operands[i].scratch >= 0:
                self.operands[i].scratch *= tile * self.width
        return tile

    cdef int stand_still(self, tgx_tile *made, char *scratch) except -1:
        """Let all operands of a small group have addresses."""
        cdef int i
        made.brought = <int16_t *>self.room.take(2 * made.noperands + 8)
        for i in range(made.noperands):
            if self.operands[i].scratch >= 0:
                self.at[i] = scratch + self.operands[i].scratch
            if self.operands[i].rank:
                made.brought[made.nbrought] = i
                made.nbrought += 1
                self._spread(&self.operands[i])
        return 0

    cdef int _spread(self, tgx_operand *o) except -1:
        """Where all that is brought is a few words of memory: which of them goes where."""
        cdef int64_t d, k, i, count = self.count, rest
        cdef int words = o.size // 4, reach = words
        cdef uint8_t *index
        for d in range(o.rank):
            if o.size < 4 or o.strides[d] < 0 or o.strides[d] % 4:
                return 0
            reach += <int>min((o.sizes[d] - 1) * o.strides[d] // 4, TGX_FEW_WORDS)
        if not count or reach > TGX_FEW_WORDS:
            return 0
        index = <uint8_t *>self.room.take(count * words + TGX_FEW_WORDS)
        for i in range(count):
            rest = i
            for d in range(o.rank - 1, -1, -1):
                index[i * words] += <uint8_t>(rest % o.sizes[d] * (o.strides[d] // 4))
                rest //= o.sizes[d]
            for k in range(1, words):
                index[i * words + k] = <uint8_t>(index[i * words] + k)
        o.spread, o.index, o.reach, o.words = tgx_spread_here(), index, reach, <int>(count * words)
        return 0


cdef tgx_tile *_tile(Routine self, Group group) except NULL:
    cdef tgx_tile *made = <tgx_tile *>self.room.take(sizeof(tgx_tile))
    cdef tgx_tile_op *op
    cdef Step step
    cdef Layout layout = Layout(self.room, self.fixups, group.key, len(group.values))
    cdef dict runs = dict(group.runs)
    cdef int i = 0, k
    layout.begin(group)
    made.count = layout.count
    made.ops = <tgx_tile_op *>self.room.take(len(group.steps) * sizeof(tgx_tile_op))
    while i < len(group.steps):
        op = &made.ops[made.nops]
        made.nops += 1
        if i in runs:
            k = runs[i]
            self.unwritten |= not layout.set_run(k, group.steps[i:k], self.code, op)
            i = k
            continue
        step = <Step>group.steps[i]
        op.loop, op.aux, op.n = step.loop, step.aux, len(step.operands)
        layout.set_operands(i, step, op)
        i += 1
    made.operands, made.noperands, made.at = layout.operands, layout.noperands, layout.at
    made.tile = layout.finish()
    for i in range(made.nops):
        op = &made.ops[i]
        for k in range(op.n):
            op.strides[k] = made.operands[op.operand[k]].step
    for i in range(made.noperands):         # what stands in the scratch does not move from tile to tile
        if made.operands[i].scratch >= 0:
            made.operands[i].step = 0
    if layout.small:
        if self.scratch == NULL:
            self.scratch = _aligned(self.room, SCRATCH)
        layout.stand_still(made, self.scratch)
    return made
