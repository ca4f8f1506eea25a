# Runs that recorders see: a slice for the run, and one for each instruction. Part of routine.pyx.

cdef int _run_watched(Routine self, PyObject **args) except? -1:
    cdef tgx_watched_run run
    cdef Recorder r
    cdef bytes abouts               # which the recorder keeps
    cdef int64_t begin
    cdef int counted = self.plan.profiled
    cdef list recorders = recorders_here()
    run.n = 0
    for recorder in recorders[:TGX_WATCHERS]:
        r = <Recorder>recorder
        abouts = _abouts(self, r)
        run.rows[run.n].about = <const tgx_about *><char *>abouts
        r.open(f"plan::{self.name}", PLAN, 0)
        run.rows[run.n].ring, run.rows[run.n].used, run.rows[run.n].depth = &r.ring, r._used(), r.depth
        run.n += 1
    if run.n:
        self.plan.seen, self.plan.watcher = tgx_instruction_seen, &run
    self.plan.profiled = counted or run.n > 0
    begin = tgx_event_clock()
    try:
        return self._run_large(args) if self.large else tgx_plan_run(&self.plan)
    finally:
        self.nanoseconds += tgx_event_clock() - begin if counted else 0
        self.plan.profiled, self.plan.seen, self.plan.watcher = counted, NULL, NULL
        for recorder in recorders[:TGX_WATCHERS]:
            (<Recorder>recorder).end_kind(PLAN, 0)


cdef bytes _abouts(Routine self, Recorder r):
    """What a recorder writes for each instruction: tgx_abouts."""
    cdef list made
    cdef bytes rows
    cdef int i
    cdef tgx_about *to
    found = r.plans.get(id(self))
    if found is not None:
        return found[1]
    rows = bytes(len(self.at) * sizeof(tgx_about) + 1)
    to = <tgx_about *><char *>rows
    for i in range(self.plan.ninstructions):
        item = self.items[self.at[i]]
        steps = item.steps if isinstance(item, Group) else [item]
        _set_about(&to[i], r, item, steps)
    r.plans[id(self)] = self, rows
    return rows


cdef int _set_about(tgx_about *to, Recorder r, item, list steps) except -1:
    """From the steps of an instruction, and the nodes that they come from."""
    cdef dict nodes = {id(s.said[0]): s.said for s in steps if s.said is not None}     # each once
    names = [s.op or s.code for s in steps]
    rows = tuple([(node.op, node.line, node.owner, tuple([_sizes(a) for a in given])) for node, given in nodes.values()])
    plan = (tuple(names), rows, sum([b.nbytes for s in steps for b in s.writes if not b.local]),
            tuple({node.seq for node, _ in nodes.values()} - {0}), tuple({node.derives for node, _ in nodes.values()} - {0}))
    to.kind = TILE if len(names) > 1 else NODE
    to.name = r.number((names[0] if len(names) == 1 else f"tile: {', '.join(_short(names))}", plan))
    if r.shapes:
        to.shapes = r.number((tuple([sizes for row in rows for sizes in row[3]]), ()))
    if r.lines:
        to.line = r.number(tuple(dict.fromkeys([row[1] for row in rows if row[1]])))
        to.owner = r.number(", ".join(dict.fromkeys([row[2] for row in rows])) or "tinygrad_ext")
    return 0


cdef list _short(list names):
    """Names without their namespace, and how often one follows itself."""
    runs = [(name, len(list(same))) for name, same in groupby([n.rpartition("::")[2] for n in names])]
    return [name if n == 1 else f"{name} x {n}" for name, n in runs]


cdef tuple _sizes(object a):
    return tuple(a.shape) if isinstance(a, Tensor) else ()
