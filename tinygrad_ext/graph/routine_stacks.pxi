# Stacks of a plan: the piles that their rows lie in. Part of routine.pyx.

cdef int _set_heaps(Routine self, lowering, list inputs) except -1:
    """See which piles a run needs. What no step uses is of a loop that was planned again."""
    cdef Heap heap
    used = [(<Step>item).heap for item in self.items if type(item) is Step and (<Step>item).heap is not None]
    for o in _stacks([self.kept[2], [o for o, _ in inputs]]):
        used.append((<Stacked>o).heap)
    while used:
        heap = used.pop()
        if heap is not None and not heap.used:
            heap.used = True
            used += heap.inner
    self.plan.piles = <tgx_pile **>self.room.take(len(self.heaps) * sizeof(tgx_pile *) + 8)
    self.plan.grow = grow
    return 0


cdef int _set_popped(Routine self, dict popped) except -1:
    """Say which pointers follow from a row that is popped."""
    cdef tgx_row *row
    cdef int i
    for which, found in popped.items():
        row = self.plan.rows[<int>which]
        row.nparts = <int>len(found)
        row.parts = <tgx_row_part *>self.room.take(len(found) * sizeof(tgx_row_part))
        for i, (where, offset) in enumerate(found):
            row.parts[i].where, row.parts[i].offset = <char **><size_t>where, offset
    return 0


cdef int _find_piles(Routine self, PyObject **args) except -1:
    """The piles of stacks that are passed in, and new ones for what is pushed in this run."""
    cdef Heap heap
    cdef Pile pile
    cdef int i
    self.piles = [None] * len(self.heaps)
    for i in range(self.ninputs):
        if self.guards[i].kind == STACK and (<Stack>args[i]).pile is not None:
            _take_pile(self, <Heap><object>self.guards[i].known, (<Stack>args[i]).pile)
    for o in self.heaps:            # those within others come first
        heap = <Heap>o
        if not heap.given and heap.used:
            pile = Pile(heap.form, [self.piles[h.number] for h in heap.inner])
            self.piles[heap.number] = pile
            self.plan.piles[heap.number] = &pile.c
    return 0


cdef int _take_pile(Routine self, Heap heap, Pile pile) except -1:
    self.piles[heap.number] = pile
    self.plan.piles[heap.number] = &pile.c
    for inner, p in zip(heap.inner, pile.inner):
        _take_pile(self, <Heap>inner, <Pile>p)
    return 0


cdef Pile _pile_of(Routine self, Heap heap):
    return None if heap is None else self.piles[heap.number]


cdef bint _same_form(Stack stack, Heap heap) noexcept:
    if stack.pile is None or heap is None:
        return stack.pile is None and heap is None
    return stack.pile.form is heap.form or stack.pile.form.key == heap.form.key


def _stacks(o):
    """The stand-ins for stacks in a value, or in lists in it."""
    if isinstance(o, Stacked):
        return [o]
    if isinstance(o, dict):
        o = list(o.values())
    return [s for x in o for s in _stacks(x)] if isinstance(o, (list, tuple)) else []
