# cython: language_level=3
"""A routine: steps laid out as a plan in C (kernels/plan.h), and the call of it.

`Routine` is made for inputs of one geometry; its `guard` says which. A call looks the inputs over, finds memory for the
results, sets the bases that pointers follow from, and runs; nothing else differs from call to call, so a call with two
tensors costs little more than the tensor it returns.

What is passed in is guarded by what the plan was made with: dtype, sizes and strides of a tensor; the type of a number that
only takes part in arithmetic, and the value of one that sizes depend on. Rejected: guards as Python expressions, which
others found to cost more than the work they guard; and plans for ranges of sizes, whose loops and memory would be
worked out anew in each call.
"""
from collections import namedtuple
from itertools import groupby

from cpython.object cimport PyObject, PyTypeObject
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy
from tinygrad_ext.core.call.kernel cimport TGX_SMALL
from tinygrad_ext.core.call.kernel_call cimport services
from tinygrad_ext.core.call.outputs cimport check_writable
from tinygrad_ext.core.call.places cimport note_mutation
from tinygrad_ext.core.data.dtype cimport CPU, default_id, dtype_of
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.storage cimport Storage, new_storage
from tinygrad_ext.core.data.tensor cimport CONTIGUOUS, READONLY, Parameter, Tensor, blank, bump, view
from tinygrad_ext.core.grad.events cimport (
    NODE, PLAN, TGX_WATCHERS, TILE, Recorder, count_watching, recorders_here, tgx_about, tgx_event_clock, tgx_instruction_seen,
    tgx_watched_run, watching,
)
from tinygrad_ext.core.data.types cimport (
    ITEMSIZE, TGX_BAD_VALUE, TGX_BOOL, TGX_INTERRUPTED, TGX_NO_MEMORY, int8_t, int64_t, uint8_t,
)
from tinygrad_ext.graph.emission cimport Code, level, tgx_emit_step, tgx_emit_value, tgx_formula
from tinygrad_ext.graph.lowering cimport Buffer, Constant, Heap, Number, Room, Stacked, Step, Way, buffer_of, kind_of
from tinygrad_ext.graph.stacks cimport Pile, Stack, grow, number_of, stack_of

from tinygrad_ext.graph.plan_h cimport *

from tinygrad_ext.graph.emission import in_runs
from tinygrad_ext.graph.lowering import numbers_in
from tinygrad_ext.graph.memory import place
from tinygrad_ext.graph.schedule cimport Group
from tinygrad_ext.graph.schedule import arrange, measure, needed, take_over, write_at_once

cdef extern from "Python.h":
    PyObject **PySequence_Fast_ITEMS(object o)
    PyObject *PyList_GET_ITEM(object o, Py_ssize_t i)
    PyObject *PyTuple_GET_ITEM(object o, Py_ssize_t i)
    int64_t PyLong_AsLongLongAndOverflow(object o, int *overflow) except? -1

cdef extern from "vectorcall.h":
    void tgx_enable_vectorcall(object type, Py_ssize_t offset, bint method)

cdef enum:
    PLANS = 64              # kept for one row of nodes, and the bytes of their arenas, the last one's left aside
    ARENAS = 1 << 28
    FAR = 1 << 20           # elements that no cache holds
    MOST_RESTS = 1023       # calls between two attempts of a plan that overflows each time

include "routine_kinds.pxi"


cdef int _interrupted() noexcept nogil:
    with gil:
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            _stopped.append(error)
            return 1
    return 0


cdef list _stopped = []         # what a handler of a signal raised


cdef class Routine:
    """Steps for inputs of one geometry.

    Attributes:
        items: what runs, in order: Groups and Steps of the schedule.
        arena_bytes: memory for what is not passed in or out; sum_bytes: what it would be without shared places.
    """

    cdef readonly list items
    cdef readonly int64_t arena_bytes
    cdef readonly int64_t sum_bytes
    cdef readonly bint large        # the interpreter's lock is let go
    cdef readonly int64_t nanoseconds       # of all runs, while it is profiled
    cdef public str name            # of the graph
    cdef int resting                # calls that are left to the interpreter, after some that the plan could not finish,
    cdef readonly int rests         # and how many that will be the next time
    cdef tgx_plan plan
    cdef bint busy
    cdef int default_dtype
    cdef int ninputs
    cdef int nresults
    cdef int nregisters
    cdef int noutputs               # memories of the results
    cdef Guard *guards
    cdef Result *results
    cdef int64_t *output_bytes
    cdef Room room
    cdef char *scratch              # of small groups
    cdef Storage arena
    cdef int *updated               # inputs that are written to
    cdef int nupdated
    cdef int *again                 # for each memory of results its only one, if that is a small gradient, or -1
    cdef list last                  # those of the last call, by their numbers,
    cdef list spare                 # and of the one before, whose memory is taken again where nobody else has them
    cdef list calls                 # functions of Python that the program calls
    cdef list fixups
    cdef list at                    # items that are instructions
    cdef list heaps                 # of the lowering
    cdef list piles                 # of the run: one for each heap, None for those that are not used
    cdef Code code                  # machine code, or None
    cdef bint unwritten             # some of it could not be written
    cdef object kept

    def __init__(self, lowering, list inputs, list outputs, again=()):
        """inputs: (what stands for it, the value seen); outputs: what stands for them, in order; again: numbers of outputs
        that are held until the call after the next."""
        self.room = lowering.room
        self.default_dtype, self.ninputs, self.nresults = default_id(), len(inputs), len(outputs)
        self.name = lowering.name
        self.calls, self.heaps = lowering.calls, lowering.heaps
        self.kept = [lowering.kept, [(o, type(value)) for o, value in inputs], outputs]     # not the values, which may be large
        self._set_guards(inputs)
        self._find_memory(lowering, inputs, outputs)
        self.fixups = lowering.fixups
        _lay_out(self)
        self.plan.rows = <tgx_row **>_pointers(self, lowering.rows)
        self.nregisters = lowering.nslots
        loops = _set_program(self, lowering, outputs)
        self._set_fixups()
        self.large = not lowering.serial and (loops or any([_work(item) > TGX_SMALL for item in self.items]))
        self._set_results(inputs, outputs)
        _set_updates(self, lowering.updated)
        _set_again(self, outputs, again)
        _set_heaps(self, lowering, inputs)

    # ---- what is passed in ---------------------------------------------------------------------------------------

    def _set_guards(self, inputs):
        cdef Guard *g
        cdef Tensor t
        cdef int i
        self.guards = <Guard *>self.room.take(self.ninputs * sizeof(Guard) + 1)
        for i, (o, value) in enumerate(inputs):
            g = &self.guards[i]
            if isinstance(o, Tensor):
                t = <Tensor>o
                g.kind, g.rank, g.dtype = TENSOR, t.rank, t.tid
                g.geometry = _geometry(self.room, t)
            elif isinstance(o, Number):
                known = type(value)
                g.kind, g.slot, g.known, g.dtype = NUMBER, (<Number>o).slot, <PyObject *>known, kind_of(value)
            elif isinstance(o, Generator):
                g.kind, g.known = GENERATOR, <PyObject *>o
            elif isinstance(o, Stacked):
                g.kind, g.slot, g.known = STACK, (<Number>(<Stacked>o).number).slot, <PyObject *>(<Stacked>o).heap
            else:
                g.kind, g.known = VALUE, <PyObject *>o

    cdef bint takes(self, PyObject **args) noexcept:
        """Whether the routine was made for such inputs."""
        cdef int i
        cdef Guard *g
        if self.default_dtype != default_id():
            return False
        for i in range(self.ninputs):
            g = &self.guards[i]
            if g.kind == TENSOR:
                if not _is_exact(args[i]) or (<Tensor>args[i]).rank != g.rank or (<Tensor>args[i]).tid != g.dtype:
                    return False
                if (<Tensor>args[i]).device_id != CPU or not _lies_so(args[i], g.rank, g.geometry):
                    return False
            elif g.kind == NUMBER:
                if type(<object>args[i]) is not <object>g.known:
                    return False
            elif g.kind == GENERATOR:
                if type(<object>args[i]) is not Generator:
                    return False
            elif g.kind == STACK:
                if type(<object>args[i]) is not Stack or not _same_form(<Stack>args[i], <Heap>g.known):
                    return False
            elif args[i] != g.known and not _equal(<object>args[i], <object>g.known):
                return False
        return not self.busy            # the last question: comparing values may have let another thread run

    # ---- laying out ----------------------------------------------------------------------------------------------

    def _find_memory(self, lowering, inputs, outputs):
        """Places for all buffers: bases for what goes in and out, the arena for the rest."""
        cdef Buffer b
        cdef int bases = self.ninputs
        returned = []
        for t in _tensors(outputs):
            b = buffer_of(<Tensor>t)
            if b.base < 0:
                b.base = bases
                bases += 1
                returned.append(b)
        numbers = [mark for n in numbers_in(outputs) for mark in (<Number>n).after]
        self.items = arrange(needed(lowering.steps, returned + numbers))
        if level():
            in_runs(self.items)
        apart = measure(self.items)
        self.items = write_at_once(self.items)
        take_over(self.items)
        self.arena_bytes = place([b for b in apart if b.into is None])
        self.sum_bytes = sum([b.nbytes for b in apart])
        self.arena = new_storage(self.arena_bytes)
        self.noutputs = len(returned)
        self.output_bytes = <int64_t *>self.room.take(8 * self.noutputs + 8)
        for i, b in enumerate(returned):
            self.output_bytes[<int>i] = b.nbytes
        self.plan.nbases = bases
        self.plan.bases = <char **>self.room.take(bases * sizeof(char *) + 8)

    def _set_fixups(self):
        """Pointers into the arena; the others follow from bases in each call."""
        cdef list fixups = self.fixups
        cdef Buffer b
        cdef char **where
        cdef int64_t offset
        cdef tgx_patch *p
        cdef dict popped = {}           # number of a row -> (address of a pointer, offset in the row)
        self.plan.patches = <tgx_patch *>self.room.take(len(fixups) * sizeof(tgx_patch) + 8)
        for at, buffer, more in fixups:
            b, where, offset = <Buffer>buffer, <char **><size_t>at, more
            while b.into is not None:
                b = b.into
            if b.first < 0 or b.local:
                continue                # of a step that is not needed, or of a value that has no memory
            if b.constant is not None:
                where[0] = b.constant.data + offset
            elif b.row:
                popped.setdefault(b.row - 1, []).append((at, b.offset + offset))
            elif b.base < 0:
                where[0] = self.arena.data + b.offset + offset
            else:
                p = &self.plan.patches[self.plan.npatches]
                p.where, p.base, p.offset = where, b.base, offset
                self.plan.npatches += 1
        self.fixups = None
        _set_popped(self, popped)

    cdef bint _laid(self) except -1:
        """Instructions for the items; whether all machine code could be written."""
        cdef tgx_instruction *to
        cdef Step step
        cdef int i
        self.plan.services, self.plan.interrupted = &services, _interrupted
        self.at = [i for i, item in enumerate(self.items) if _is_instruction(item)]
        self.plan.ninstructions = len(self.at)
        self.plan.instructions = <tgx_instruction *>self.room.take(len(self.at) * sizeof(tgx_instruction) + 8)
        for i in range(self.plan.ninstructions):
            to, item = &self.plan.instructions[i], self.items[self.at[i]]
            to.work = _work(item)
            if isinstance(item, Group):
                to.tile = _tile(self, <Group>item)
                to.code = TGX_PLAN_TILE if to.tile.brought == NULL else TGX_PLAN_SMALL
                continue
            step = <Step>item
            if step.code == "raw":
                to.code, to.raw.kernel, to.raw.call = TGX_PLAN_RAW, step.kernel, step.call
            elif step.code == "move":
                to.code, to.move.to, to.move.source, to.move.nbytes = TGX_PLAN_MOVE, step.target, step.origin, step.nbytes
            else:
                to.code = TGX_PLAN_ZERO if step.code == "zero" else TGX_PLAN_COPY
                to.copy.to, to.copy.source = step.to, step.source
        return not self.unwritten

    # ---- what comes out --------------------------------------------------------------------------------------------

    def _set_results(self, inputs, outputs):
        cdef int i
        given = {id(o): at for at, (o, _) in enumerate(inputs) if isinstance(o, Tensor)}
        self.results = <Result *>self.room.take(self.nresults * sizeof(Result) + 8)
        for i in range(self.nresults):
            _set_result(self, &self.results[i], outputs[i], given)

    # ---- the call ------------------------------------------------------------------------------------------------

    cdef tuple run(self, PyObject **args):
        """Results for inputs that the routine takes. Raises Failed, and what a signal's handler raises."""
        self.busy = True
        try:
            return self._run(args)
        finally:
            self.piles = None
            self.busy = False

    cdef inline tuple _run(self, PyObject **args):
        cdef int i, code
        cdef Guard *g
        cdef list memories = None
        for i in range(self.ninputs):
            g = &self.guards[i]
            if g.kind == TENSOR:
                self.plan.bases[i] = (<Tensor>args[i]).data
            elif g.kind == NUMBER:
                if not _take_number(&self.plan.numbers[g.slot], g.dtype, <object>args[i]):
                    raise Failed(TGX_BAD_VALUE)         # the interpreter has numbers of any size
            elif g.kind == GENERATOR:
                (<Generator>g.known).mt = (<Generator>args[i]).mt
            elif g.kind == STACK:
                self.plan.numbers[g.slot].i = (<Stack>args[i]).top
        if self.heaps:
            _find_piles(self, args)
        if self.noutputs:
            memories = _memories(self)
        for i in range(self.nupdated):
            if not _is_writable(<Tensor>args[self.updated[i]]):
                check_writable(<Tensor>args[self.updated[i]], "the new value of a state")
        if watching:
            code = _run_watched(self, args)
        else:
            code = self._run_large(args) if self.large else tgx_plan_run(&self.plan)
        if code == TGX_INTERRUPTED and _stopped:
            raise _stopped.pop()
        if code == TGX_NO_MEMORY:
            raise MemoryError("a loop keeps more of its turns for the backward pass than there is memory: run fewer turns, "
                              "or use smaller tensors; where no gradient is needed, call it under no_grad()")
        if code:
            raise Failed(code)
        for i in range(self.nupdated):
            bump(<Tensor>args[self.updated[i]])
            note_mutation(<Tensor>args[self.updated[i]])
        return self._made(args, memories)

    cdef int rest(self) except -1:
        """The plan could not finish: leave some calls to the interpreter, more each time that it happens again at once."""
        self.rests = min(2 * self.rests + 1, MOST_RESTS)
        self.resting = self.rests
        return 0

    cdef int _run_large(self, PyObject **args) except? -1:
        """Without the interpreter's lock; another thread may give the tensors other memory meanwhile."""
        cdef int code
        _held = [(<Tensor>args[i]).storage for i in range(self.ninputs) if self.guards[i].kind == TENSOR]
        with nogil:
            code = tgx_plan_run(&self.plan)
        return code

    cdef tuple _made(self, PyObject **args, list memories):
        cdef int i
        cdef object o
        cdef tuple made = PyTuple_New(self.nresults)
        for i in range(self.nresults):
            if self.results[i].kind == ITSELF:
                Py_INCREF(<object>args[self.results[i].at])
                PyTuple_SET_ITEM(made, i, <object>args[self.results[i].at])
                continue
            o = _result(self, &self.results[i], args, memories)
            Py_INCREF(o)
            PyTuple_SET_ITEM(made, i, o)
        if self.noutputs:
            _keep_again(self, made)
        return made

    # ---- looking ---------------------------------------------------------------------------------------------------

    def rows(self):
        """What runs, in order: Rows."""
        cdef dict number = {at: i for i, at in enumerate(self.at)}
        for i, item in enumerate(self.items):
            steps = item.steps if isinstance(item, Group) else [item]
            steps = [s for s in steps if s.op != "put" and (s.op or s.code != "control")]
            if steps:
                nbytes = sum([b.nbytes for s in steps for b in s.writes if not b.local])
                yield Row(_kind_of(item), [s.node for s in steps], [s.op for s in steps], _work(item), nbytes,
                       self.plan.instructions[<int>number[i]].nanoseconds if i in number else 0,
                       tuple((<Group>item).runs) if isinstance(item, Group) else ())

    def profile(self, bint on):
        """Count the time of each instruction from now on, or stop."""
        cdef int i
        count_watching(on - self.plan.profiled)
        self.plan.profiled = on
        self.nanoseconds = 0 if on else self.nanoseconds
        for i in range(self.plan.ninstructions if on else 0):
            self.plan.instructions[i].nanoseconds = 0


include "routine_watched.pxi"
include "routine_runner.pxi"
include "routine_numbers.pxi"
include "routine_results.pxi"
include "routine_memory.pxi"
include "routine_stacks.pxi"
include "routine_groups.pxi"
include "routine_runs.pxi"
