# Groups of pointwise steps laid out: where their operands lie. Part of routine.pyx.

cdef class Layout:
    """Where the operands of a group lie. Registers are parts of the scratch, of one tile each."""

    cdef Room room
    cdef list fixups, dims, free
    cdef dict index, registers, last
    cdef tgx_operand *operands
    cdef int noperands, nregisters, width, rank
    cdef int64_t count

    def __init__(self, Room room, list fixups, key, int nvalues):
        sizes, strides = key
        self.room, self.fixups, self.rank = room, fixups, len(sizes)
        self.dims = sorted([d for d in range(len(sizes)) if sizes[d] != 1], key=lambda d: -strides[d])
        self.dims = [(d, sizes[d]) for d in self.dims]
        self.index, self.registers, self.last, self.free = {}, {}, {}, []
        self.operands = <tgx_operand *>room.take(nvalues * sizeof(tgx_operand))
        self.width, self.count = 1, 1
        for _, n in self.dims:
            self.count *= n

    cdef int begin(self, list steps) except -1:
        """Look for the last step that reads each value; bring in what lies in memory otherwise than the results do."""
        cdef Step step
        for i, s in enumerate(steps):
            step = <Step>s
            self.last[id(step.writes[0])] = i
            for b, _ in step.reads:
                self.last[id(b)] = i
            for o in step.operands:
                if isinstance(o, Tensor) and not buffer_of(<Tensor>o).local and id(o) not in self.index:
                    self._memory(<Tensor>o)
        return 0

    cdef int _new(self, int itemsize, ptrdiff_t step, int scratch) except -1:
        cdef tgx_operand *o = &self.operands[self.noperands]
        o.size, o.step, o.scratch = itemsize, step, scratch
        self.noperands += 1
        return self.noperands - 1

    cdef int _memory(self, Tensor t) except -1:
        """An operand in memory, read where it lies if one step leads from each element to the next."""
        cdef list merged = []
        cdef int64_t stride
        cdef int k, at, size = ITEMSIZE[t.tid]
        for d, n in self.dims:
            k = d - (self.rank - t.rank)
            stride = 0 if k < 0 or t.sizes[k] == 1 else t.strides[k] * size
            outer = merged.pop() if merged else None
            if outer is None or outer[1] != stride * n:
                merged += [(n, stride)] if outer is None else [outer, (n, stride)]
            else:
                merged.append((outer[0] * n, stride))
        at = self._new(size, merged[0][1] if merged else size, -1)
        if len(merged) > 1:
            self._brought(at, merged)
        self.index[id(t)] = at
        self.fixups.append((<size_t>&self.operands[at].data, t.storage.owner, <int64_t>(t.data - t.storage.data)))
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
                    self.free.append(at)
                else:
                    later.append(at)
        op.operand[0] = self._written(result)
        self.free += later
        return 0

    cdef int _read(self, object o) except -1:
        cdef int at
        if isinstance(o, Constant):
            at = self._new((<Constant>o).size, 0, -1)
            self.operands[at].data = (<Constant>o).data
            return at
        if buffer_of(<Tensor>o).local:
            return self._register(self.registers[id(buffer_of(<Tensor>o))][0], ITEMSIZE[(<Tensor>o).tid])
        return self.index[id(o)]

    cdef int _written(self, Tensor t) except -1:
        cdef int at, size = ITEMSIZE[t.tid]
        if not buffer_of(t).local:
            return self.index[id(t)]
        if self.free:
            at = self.free.pop()
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
        if self.nregisters:
            tile = min(512 if self.count > FAR else 1024, TGX_TILE_SCRATCH // (self.nregisters * self.width)) & ~15
        for i in range(self.noperands):
            if self.operands[i].scratch >= 0:
                self.operands[i].scratch *= tile * self.width
        return tile
